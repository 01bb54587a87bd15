"""The ground floor: errors, files, options, progress and text. Nothing here knows about datasets or models."""
