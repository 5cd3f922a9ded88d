"""Paired measurements against peers: how they are taken is in `paired`, what is measured in `environments`."""
