"""Run axe-core on a page in half the usual time.

Most of the time is spent on contrast, which axe-core computes for every text of a page. These functions check the
contrast of only one text of each kind, since texts in the same font and colour on the same background have the same
contrast.
"""

from axe_playwright_python.sync_playwright import Axe

FIND = """async (onlyColours) => {
    const grounds = new Map([[null, ""]]);
    const groundOf = (node) => {
        if (!grounds.has(node)) {
            const { backgroundColor, backgroundImage, opacity } = getComputedStyle(node);
            const own = `${backgroundColor} ${backgroundImage} ${opacity}`;
            grounds.set(node, groundOf(node.parentElement) + (own === "rgba(0, 0, 0, 0) none 1" ? "" : `, ${own}`));
        }
        return grounds.get(node);
    };
    const kinds = new Map(), texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const node = texts.currentNode.parentElement;
        if (!texts.currentNode.data.trim() || !node.checkVisibility({ visibilityProperty: true })) continue;
        const { color, fontSize, fontWeight } = getComputedStyle(node);
        kinds.set([node.tagName, node.className, color, fontSize, fontWeight, groundOf(node)].join(), node);
    }
    const quick = { preload: false, resultTypes: ["violations"] };    // no passes
    const colours = kinds.size
        ? (await axe.run({ include: [...kinds.values()] }, { ...quick, runOnly: ["color-contrast"] })).violations : [];
    if (onlyColours) return colours;
    return [...colours, ...(await axe.run({ ...quick, rules: { "color-contrast": { enabled: false } } })).violations];
}"""


def violations(page, only_colours=False):
    """Return axe-core's violations: (impact, rule, element, summary) for each element."""
    page.wait_for_function("!document.getAnimations().some((each) => each instanceof CSSTransition)")  # of colours
    if page.evaluate("!window.axe"):
        page.evaluate(Axe().axe_script)
    return [
        (rule["impact"], rule["id"], node["html"][:120], node["failureSummary"])
        for rule in page.evaluate(FIND, only_colours)
        for node in rule["nodes"]
    ]


def violations_in_both_themes(page):
    """Return the violations of a page in the light theme and then, for colours only, in the dark theme."""
    problems = violations(page)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    return problems + violations(page, only_colours=True)
