"""The datasets of CKL: InvariantLAMA, UpdatedLAMA, NewLAMA and RecentNews (Jang et al., ICLR 2022)."""
