"""Run the command, also as ``python -m temporalwiki`` or ``accelerate launch -m temporalwiki``."""

import sys


def main() -> int:
    """Run the command and return its exit status. An interrupt while Python still imports gives one line as well."""
    try:
        from temporalwiki.commands import main as run

        return run()
    except KeyboardInterrupt:
        print("temporalwiki: interrupted", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
