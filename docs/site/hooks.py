"""Pages of the documentation site that are made from other files of the repository.

MkDocs calls these functions. Documents that lie beside the code become pages, links between them follow, and
each package gets a reference of the names that its rooms offer.
"""

from __future__ import annotations

import ast
import posixpath
import re
import tomllib
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[2]

BESIDE_THE_CODE: Final = {
    "formulation.md": "planner/formulation/FORMULATION.md",
    "results.md": "benchmarks/RESULTS.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
    "accuracy-tables.md": "benchmarks/accuracy_tables.md",
    "paper-notes.md": "benchmarks/paper_notes.md",
    "ortools-presolve.md": "benchmarks/ortools-presolve.md",
    "highs-presolve.md": "benchmarks/highs-presolve.md",
}
"""Page of the site by the file of the repository that it shows."""

GALLERY: Final = ROOT / "build" / "gallery"
"""Where `make site` draws before the site is built."""

PACKAGES: Final = ("planner", "perfmodel", "fleet")

_LINK: Final = re.compile(r"(?<=\]\()([^)#\s]+)(?=[#)])")

_LINK_BY_FILE: Final = re.compile(r"\[[\w./-]+\.md\]\(([^)#\s]+\.md)\)")
"""A link whose words are the name of the file that it leads to."""

_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file of the documentation holds."""
    for page, source in BESIDE_THE_CODE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_linked(text, source)))
    for package in PACKAGES:
        files.append(File.generated(config, f"reference/{package}.md", content=_reference(package)))
    for path in sorted(GALLERY.glob("**/*")):
        if path.is_file():
            name = f"gallery/{path.relative_to(GALLERY).as_posix()}"
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files of the repository into links to their pages, by title where a file is named."""
    source = page.file.src_uri
    linked = markdown if source in BESIDE_THE_CODE else _linked(markdown, f"docs/{source}")

    def by_title(match: re.Match[str]) -> str:
        file = files.get_file_from_path(
            posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        )
        title = None if file is None else _TITLE.search(file.content_string)
        return match[0] if title is None else f"[{title[1]}]({match[1]})"

    return _LINK_BY_FILE.sub(by_title, linked)


def _linked(text: str, source: str) -> str:
    """Return a document with links to other documents as links between pages.

    Parameters
    ----------
    text : str
        Markdown.
    source : str
        Its path in the repository, which its links are relative to.
    """
    pages = {path: page for page, path in BESIDE_THE_CODE.items()}

    def page_of(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        if target in pages:
            return pages[target]
        inside = target.startswith("docs/") and not source.startswith("docs/")
        return target.removeprefix("docs/") if inside else match[1]

    return _LINK.sub(page_of, text)


def _reference(package: str) -> str:
    """Return the reference of a package: what the face of each room says and offers."""
    folder = ROOT / package
    rooms = [room for room in sorted(folder.iterdir()) if (room / "__init__.py").is_file() and _offered(room)]
    blocks = [f"# {package}\n\n{_first_lines(folder)}\n"]
    for room in rooms:
        names = "".join(f"        - {name}\n" for name in _offered(room))
        blocks.append(f"::: fleetplan.{package}.{room.name}\n    options:\n      members:\n{names}")
    return "\n".join(blocks)


def _first_lines(room: Path) -> str:
    return ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""


def _offered(room: Path) -> list[str]:
    """Return the names in `__all__` of a room, in order; none where it states none."""
    tree = ast.parse((room / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            return list(ast.literal_eval(node.value))
    return []


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """State the version that the pages describe."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    config.copyright = f"fleetplan {project['version']}, {project['license']}"
    return config
