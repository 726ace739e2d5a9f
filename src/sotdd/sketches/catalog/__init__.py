"""Named sketches on disk, searched for the datasets most like another."""
