"""Services: demand, traffic, techniques and variants, engine tables, and followers of other services."""
