"""Launch a plan's placements: framework commands and manifests of Kubernetes tools."""
