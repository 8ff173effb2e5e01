"""The claims of the paper: as data, measured from runs, judged, and written as a page."""
