"""The command line: ``python -m relational_tensat``, and the script ``relational-tensat``."""

from relational_tensat.ctrl_c import end_at_ctrl_c


def process() -> None:
    """Be the whole process."""
    end_at_ctrl_c()
    from relational_tensat.cli.main import process

    process()


if __name__ == "__main__":
    process()
