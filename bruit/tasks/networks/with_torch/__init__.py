"""What needs torch: imported when a network is asked something, never by `import bruit`."""
