/* Elements, and nothing more. */

const SVG = 'http://www.w3.org/2000/svg';

/**
 * The element of the page with this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
    const found = document.getElementById(id);
    if (found === null) {
        throw new Error(`the page has no element ${id}`);
    }
    return found;
}

function filled(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (value !== undefined && value !== null && value !== false) {
            element.setAttribute(name, value === true ? '' : String(value));
        }
    }
    element.append(...children);
    return element;
}

/**
 * Makes an element.
 * @param {string} tag
 * @param {Record<string, string | number | boolean | undefined>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
    return filled(document.createElement(tag), attributes, children);
}

/**
 * Makes an element of a drawing.
 * @param {string} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {...Node} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
    return filled(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * A meter: the bar with its role, and the text beside it.
 * @param {HTMLElement} meter
 * @param {number | null} share 0 to 1; null: nobody knows
 * @param {string} text
 */
export function setMeter(meter, share, text) {
    const bar = meter.querySelector('.bar');
    bar.classList.toggle('unknown', share === null);
    if (share === null) {
        bar.removeAttribute('aria-valuenow');
    } else {
        bar.setAttribute('aria-valuenow', String(Math.round(share * 100)));
        bar.firstElementChild.style.setProperty('transform', `scaleX(${share})`);
    }
    bar.setAttribute('aria-valuetext', text);
    meter.querySelector('.meter-text').textContent = text;
}
