"""What experiments share: data, methods, networks, tables of results, pictures."""
