"""Charts and maps as SVG, and the markup around them."""
