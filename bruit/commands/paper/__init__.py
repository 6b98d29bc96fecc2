"""Commands that write what people sign."""
