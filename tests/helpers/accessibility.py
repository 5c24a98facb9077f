"""Run axe-core on a page in half the usual time.

Most of the time is spent on contrast, which axe-core computes for every text on a page. These functions check the
contrast of only one text of each kind, since texts in the same font and colour on the same background have the same
contrast.
"""

from axe_playwright_python.sync_playwright import Axe

RUN_AXE = """async (onlyColours) => {
    const backgrounds = new Map([[null, ""]]);
    const backgroundOf = (node) => {
        if (!backgrounds.has(node)) {
            const { backgroundColor, backgroundImage, opacity } = getComputedStyle(node);
            const style = `${backgroundColor} ${backgroundImage} ${opacity}`;
            const shown = style === "rgba(0, 0, 0, 0) none 1" ? "" : `, ${style}`;
            backgrounds.set(node, backgroundOf(node.parentElement) + shown);
        }
        return backgrounds.get(node);
    };
    const nodesByStyle = new Map(), walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !node.checkVisibility({ visibilityProperty: true })) continue;
        const { color, fontSize, fontWeight } = getComputedStyle(node);
        nodesByStyle.set([node.tagName, node.className, color, fontSize, fontWeight, backgroundOf(node)].join(), node);
    }
    const options = { preload: false, resultTypes: ["violations"] };    // no passes
    const include = [...nodesByStyle.values()];
    const contrast = include.length
        ? (await axe.run({ include }, { ...options, runOnly: ["color-contrast"] })).violations : [];
    if (onlyColours) return contrast;
    const others = (await axe.run({ ...options, rules: { "color-contrast": { enabled: false } } })).violations;
    return [...contrast, ...others];
}"""


def violations(page, only_colours=False):
    """Return axe-core's violations: (impact, rule, element, summary) for each element."""
    # Wait until no colour is changing.
    page.wait_for_function("!document.getAnimations().some((each) => each instanceof CSSTransition)")
    if page.evaluate("!window.axe"):
        page.evaluate(Axe().axe_script)
    return [
        (rule["impact"], rule["id"], node["html"][:120], node["failureSummary"])
        for rule in page.evaluate(RUN_AXE, only_colours)
        for node in rule["nodes"]
    ]


def violations_in_both_themes(page):
    """Return a page's violations in the light theme, and its violations of the rules for colours in the dark theme."""
    problems = violations(page)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    return problems + violations(page, only_colours=True)
