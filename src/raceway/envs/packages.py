"""Packages that environments need and that are not installed: what to install."""

from __future__ import annotations

import importlib.util
import re
import traceback
from pathlib import Path

from gymnasium.error import DependencyNotInstalled

from raceway.envs.catalog import native_version
from raceway.errors import MissingPackageError
from raceway.messages import printable

_PACKAGES = {
    "ale_py": "ale-py",
    "Box2D": '"gymnasium[box2d]"',
    "cv2": "opencv-python",
    "flax": "flax",
    "moviepy": "moviepy",
    "pygame": "pygame",
    "gymnasium_robotics": "gymnasium-robotics",
    "highway_env": "highway-env",
    "OpenGL": "PyOpenGL",
    "PIL": "pillow",
    "shimmy": '"shimmy[dm-control]"',
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""What pip calls the packages of modules with another name."""

_MODULES = {
    "ALE/": "ale_py",
    "MiniGrid-": "minigrid",
    "BabyAI-": "minigrid",
    "MiniWorld-": "miniworld",
    "highway-": "highway_env",
    "merge-": "highway_env",
    "roundabout-": "highway_env",
    "parking-": "highway_env",
    "intersection-": "highway_env",
    "Fetch": "gymnasium_robotics",
    "HandManipulate": "gymnasium_robotics",
    "HandReach": "gymnasium_robotics",
    "AdroitHand": "gymnasium_robotics",
    "PointMaze": "gymnasium_robotics",
    "AntMaze": "gymnasium_robotics",
    "FrankaKitchen": "gymnasium_robotics",
    "dm_control/": "shimmy",
    "Vizdoom": "vizdoom",
}
"""How the ids of well-known packages begin, and the modules that register them."""


_GAMES = (
    "Adventure AirRaid Alien Amidar Assault Asterix Asteroids Atlantis BankHeist BattleZone BeamRider Berzerk Bowling "
    "Boxing Breakout Carnival Centipede ChopperCommand CrazyClimber Defender DemonAttack DoubleDunk ElevatorAction "
    "Enduro FishingDerby Freeway Frostbite Gopher Gravitar Hero IceHockey Jamesbond JourneyEscape Kangaroo Krull "
    "KungFuMaster MontezumaRevenge MsPacman NameThisGame Phoenix Pitfall Pong Pooyan PrivateEye Qbert Riverraid "
    "RoadRunner Robotank Seaquest Skiing Solaris SpaceInvaders StarGunner Tennis TimePilot Tutankham UpNDown Venture "
    "VideoPinball WizardOfWor YarsRevenge Zaxxon"
)
"""The Atari games that had ids without a namespace."""
_OLD_ATARI = re.compile(r"(?P<game>[A-Za-z]+?)(?P<ram>-ram)?(NoFrameskip|Deterministic)?(-v\d+)?")


def refuse_elsewhere(name: str) -> None:
    """Refuses an id that nobody has registered, if a well-known package has it."""
    old = _OLD_ATARI.fullmatch(name)
    if old is not None and old["game"] in _GAMES.split():
        ram = " with obs_type='ram' (--env.obs_type ram)" if old["ram"] else ""
        lacks = "" if _is_installed("ale_py") else f" Its package is not installed: pip install {_package('ale_py')}"
        raise MissingPackageError(
            f"No environment {name!r}. The Atari game is 'ale_py:ALE/{old['game']}-v5'{ram}.{lacks}"
        )
    module = next((its for start, its in _MODULES.items() if name.startswith(start)), None)
    if module is None:
        return
    named = f"{module}:{name}"
    if _is_installed(module):
        raise MissingPackageError(f"{name} is registered by {module}, which has not been imported. Use {named!r}.")
    raise MissingPackageError(
        f"{name} is in a package that is not installed: pip install {_package(module)}. Then use {named!r}."
    )


def missing(name: str, error: ImportError | DependencyNotInstalled) -> MissingPackageError:
    """What to install for the environment `name`, whose making or import ended with `error`."""
    instead = native_version(name)
    hint = f" There is {instead!r}, which runs natively." if instead else ""
    return MissingPackageError(f"{printable(name)} cannot be made: {what_is_missing(error)}{hint}")


def what_is_missing(error: ImportError | DependencyNotInstalled) -> str:
    """The missing module, the file that imports it, and what to install."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return printable(" ".join(str(error).split()) or type(error).__name__, 500)
    top = error.name.partition(".")[0]
    where = _importer(error)
    text = f"there is no module {error.name!r}{where and f', which {where} imports'}."
    if _is_installed(top):
        return text
    if package := _package(top):
        return f"{text} Install the package that has it: pip install {package}"
    # By its name alone it could be anybody's: a stranger may have taken that of a module of the user's.
    if "site-packages" in where or "dist-packages" in where:
        return f"{text} Install the package that provides it."
    beside = f"put it beside {where.rpartition(':')[0]}" if where else "put it where Python finds it"
    return f"{text} If it is yours, {beside}; otherwise install the package that provides it."


def _package(module: str) -> str | None:
    """What pip calls the package of a module; None if it is not a well-known one."""
    return _PACKAGES.get(module) or (module if module in _MODULES.values() else None)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _importer(error: BaseException) -> str:
    """The file with the import that failed; empty if that is ours."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<frozen")]
    frames = [each for each in frames if Path(each.filename).parent.name != "importlib"]
    if not frames or Path(frames[-1].filename).is_relative_to(Path(__file__).parents[1]):
        return ""
    path = Path(frames[-1].filename)
    short = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"{short}:{frames[-1].lineno}"
