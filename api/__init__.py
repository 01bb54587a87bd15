"""The functions that ``import temporalwiki`` offers, one file each; the commands print what they return."""
