"""Says what Sphinx is doing, in the place of its own hundred lines."""


def read(app, env, names):
    if names:
        print(f"  reading {len(names)} pages", flush=True)


def write(app, env):
    print("  writing the pages", flush=True)


def setup(app):
    app.connect("env-before-read-docs", read)
    app.connect("env-updated", write)
