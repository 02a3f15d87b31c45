"""Ways to run a service: from the landscape or engine tables, under queues, without the dominated ones."""
