"""What all tests share: pictures are drawn without a screen, and hypothesis tries the same examples every time."""

import os

from hypothesis import settings

from tests.examples import examples

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

settings.register_profile("raceway", deadline=None, derandomize=True, max_examples=examples(100))
settings.load_profile("raceway")
