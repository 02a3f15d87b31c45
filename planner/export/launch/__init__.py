"""What a plan's placements are launched with: flags of the frameworks and manifests of Kubernetes tools."""
