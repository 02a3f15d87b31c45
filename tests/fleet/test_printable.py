"""No character of a name steers what shows it."""

from fleetplan.fleet.printable import printable, steering_character


def test_steering_characters_are_written_out_and_others_stay() -> None:
    text = "a\x1b[31mb\x7f\x9bc\rd\u202ee\ud800"
    assert printable(text) == r"a\x1b[31mb\x7f\x9bc\x0dd\u202ee\ud800"
    assert printable("zwölf\t日本\n🚀 \u200d") == "zwölf\t日本\n🚀 \u200d"


def test_the_first_steering_character_is_named() -> None:
    assert steering_character("a\x1bb\x9b") == "U+001B"
    assert steering_character("plain") is None


def test_what_has_no_width_is_no_part_of_a_name() -> None:
    assert steering_character("ch\u200bat") == "U+200B"
    assert steering_character("chat\ufeff") == "U+FEFF"
    assert printable("a\u200fb") == r"a\u200fb"
