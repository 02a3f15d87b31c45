"""Launch files of a plan's placements: flags of the frameworks and manifests of Kubernetes tools."""
