"""From events to epsilon: closed forms for Gaussian noise, basic composition, privacy loss distributions."""
