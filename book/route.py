"""Adds routes to the data of a page: the stop before the page and, for each section on a route, the next stop.

A route begins and ends on its own page. For readers who follow the route, ``route.js`` shows the links.
"""

import json
from functools import cache

import routes
from book.mentions import headings
from book.prose import address


@cache  # for all pages of a build
def stops(env, route):
    """Return the stops of a route in order, with the route's page first and last: (page, anchor, text of a link)."""
    headings_by_number = headings(env)
    title = env.titles[route.page].astext()
    route_stops = [(route.page, "", title)]
    for kind, number in route.sections_and_exercises:
        for page, anchor in headings_by_number[kind, number]:
            name = routes.heading(kind, number).replace("`", "")
            route_stops.append((page, anchor, f"{'Exercise ' if kind == 'exercise' else ''}{number} {name}"))
    return [*route_stops, (route.page, "", f"the end of {title}")]


def route_data(app, page):
    """Return the data for ``route.js``: each route's title, the link to the stop before the page, and the page's stops.

    A stop consists of its anchor and the link to the next stop. The page of a route is its own first stop, without an
    anchor.
    """

    def link(stop):
        stop_page, anchor, title = stop
        return [address(app, page, stop_page, anchor), title]

    by_route = {}
    for route in routes.ROUTES:
        stops_on_route = stops(app.env, route)
        indices = [
            index
            for index, (stop_page, *_) in enumerate(stops_on_route)
            if stop_page == page and index < len(stops_on_route) - 1
        ]
        if indices:
            previous_link = link(stops_on_route[indices[0] - 1]) if indices[0] else None
            by_route[route.page] = [
                app.env.titles[route.page].astext(),
                previous_link,
                [[stops_on_route[index][1], link(stops_on_route[index + 1])] for index in indices],
            ]
    return by_route


def add_script(app, pagename, templatename, context, doctree):
    if doctree is not None and (by_route := route_data(app, pagename)):
        data = json.dumps(by_route, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
        app.add_js_file(None, body=f"const ROUTES = {data};", priority=400)
        app.add_js_file("route.js", defer="defer", priority=900)


def setup(app):
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
