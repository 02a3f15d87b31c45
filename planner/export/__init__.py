"""Export plans to files for other tools: plan.json, CSV tables, workbook and manifests."""
