"""The report page: sections that are data until the last step, then one HTML file."""
