"""Monte-Carlo tree search in the setting of its paper, and how fast its rollouts are."""
