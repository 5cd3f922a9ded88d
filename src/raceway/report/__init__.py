"""What a run says and leaves behind: metrics, the console, videos, what held it up, and what this machine can do."""
