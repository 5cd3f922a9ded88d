"""A window that shows pictures, where there is a screen."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from raceway.errors import MissingPackageError


def has_screen() -> bool:
    """Whether a window could be opened."""
    if os.environ.get("SDL_VIDEODRIVER", "") in ("dummy", "offscreen"):
        return False
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def show(frames: Iterable[np.ndarray], fps: float, title: str) -> bool:
    """Shows RGB pictures [height, width, 3] one after the other. False if the user closed the window before the end."""
    pygame = _pygame()
    pygame.display.init()
    try:
        pygame.display.set_caption(title)
        screen, ticks = None, pygame.time.Clock()
        for frame in frames:
            height, width = frame.shape[:2]
            if screen is None or screen.get_size() != (width, height):
                screen = pygame.display.set_mode((width, height))
            pygame.surfarray.blit_array(screen, frame.transpose(1, 0, 2))
            pygame.display.flip()
            if _is_closed(pygame):
                return False
            ticks.tick(fps)
        return True
    finally:
        pygame.display.quit()


def _is_closed(pygame: Any) -> bool:
    leaves = (pygame.K_ESCAPE, pygame.K_q)
    return any(
        event.type == pygame.QUIT or (event.type == pygame.KEYDOWN and event.key in leaves)
        for event in pygame.event.get()
    )


def _pygame() -> Any:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError:
        raise MissingPackageError("A window needs pygame. pip install 'raceway[render]'") from None
    return pygame
