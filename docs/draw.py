#!/usr/bin/env python3
"""Draws docs/pictures/*.svg from the descriptions beside them, docs/pictures/*.txt.

    docs/draw.py                     writes the pictures
    docs/draw.py --check [FOLDER]    tells which ones are not what their description says; exit status 1 if there are any

A description has one command a line. Places and sizes are in units of 10 pixels. Texts are in quotes: "*bold", "`code",
"~small", else plain. Styles are the keys of STYLES.

    title TEXT                          what the picture shows, for those who cannot see it
    size W [H]                          without H as high as the steps need
    frame X Y W H TEXT                  a room with a name, behind boxes
    box ID X Y W H STYLE TEXT...        one line of the box a TEXT
    text X Y left|center|right TEXT
    arrow ID SIDE ID SIDE [dashed] [TEXT]   SIDE: left right top bottom; with @0.25 the place along it, with @= the
                                        place opposite to the other end
    lane ID X STYLE TEXT...             time runs downwards; lanes come before steps
    step ID ID [dashed] TEXT            an arrow from lane to lane
    note ID W STYLE TEXT...             a box on a lane
    gap H                               time that passes
    layers COLUMNS                      the layers and their rooms, as the table of rooms in docs/architecture.md has them,
                                        from the lowest at the bottom

A text that does not fit its box or lies on one, boxes that overlap, and arrows that cross a box are refused.
"""
import pathlib
import re
import shlex
import sys
from xml.sax.saxutils import escape

UNIT = 10
FOLDER = pathlib.Path(__file__).resolve().parent / 'pictures'
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, 'SF Mono', Menlo, 'DejaVu Sans Mono', monospace"
INK, FAINT, LINE, PAPER, EDGE = '#1f2933', '#5b6673', '#5b6673', '#fbfcfd', '#d5dae0'
# On a card of their own, so that they can be read on dark pages as on light ones: fill, border.
STYLES = {
    'plain': ('#ffffff', '#9aa5b1'),
    'quiet': ('#eef1f4', '#b8c1cb'),
    'main': ('#e3edfb', '#3a72c0'),
    'good': ('#e2f3e7', '#2f8a4d'),
    'warn': ('#fcf0d9', '#b97a14'),
    'bad': ('#fae4e1', '#bf4433'),
}
# Advance widths of DejaVu Sans, the widest of the fonts above, in hundredths of its size, from ' ' to '~'.
WIDTHS = [int(w) for w in '''32 40 46 84 64 95 78 27 39 39 50 84 32 36 32 34 64 64 64 64 64 64 64 64 64 64 34 34 84 84 84
53 100 68 69 70 77 63 58 77 75 29 29 66 56 86 75 79 60 79 69 63 61 73 68 99 69 61 69 39 34 39 84 50 50 61 63 55 63 62 35
63 63 28 28 58 28 97 63 61 63 63 41 52 39 63 59 82 59 59 52 64 34 64 84'''.split()]


class Text:
    """One line: how it looks, and how much room it takes."""

    def __init__(self, source):
        mark = source[0] if source[:1] in ('*', '`', '~') else ''
        self.words = source[len(mark):].replace('  ', '\u00a0\u00a0')
        self.size = {'~': 11}.get(mark, 12.5)
        self.bold, self.mono, self.faint = mark == '*', mark == '`', mark == '~'

    def width(self):
        if self.mono:
            return 0.602 * self.size * len(self.words)
        hundredths = sum(WIDTHS[ord(c) - 32] if ' ' <= c <= '~' else 65 for c in self.words)
        return hundredths / 100 * self.size * (1.1 if self.bold else 1)

    def svg(self, x, y, anchor='middle', halo=False):
        style = f'font-size="{self.size}" fill="{FAINT if self.faint else INK}" text-anchor="{anchor}"'
        if self.bold:
            style += ' font-weight="600"'
        if self.mono:
            style += f' font-family="{MONO}"'
        if halo:
            style += f' paint-order="stroke" stroke="{PAPER}" stroke-width="5" stroke-linejoin="round"'
        return f'<text x="{x:g}" y="{y:g}" {style}>{escape(self.words)}</text>'


class Box:
    def __init__(self, name, x, y, w, h, style, texts):
        self.name, self.x, self.y, self.w, self.h = name, x, y, w, h
        self.fill, self.border = STYLES[style]
        self.texts = [Text(t) for t in texts]
        self.leading = 17
        for text in self.texts:
            if text.width() > w - 8:
                raise ValueError(f'"{text.words}" needs {text.width() + 8:.0f} of {w:g}')
        if self.leading * len(self.texts) > h - 2:
            raise ValueError(f'{name}: {len(self.texts)} lines in a height of {h:g}')

    def svg(self):
        out = [f'<rect x="{self.x:g}" y="{self.y:g}" width="{self.w:g}" height="{self.h:g}" rx="6" '
               f'fill="{self.fill}" stroke="{self.border}" stroke-width="1.3"/>']
        first = self.y + self.h / 2 - self.leading * (len(self.texts) - 1) / 2 + 4.4
        out += [t.svg(self.x + self.w / 2, first + i * self.leading) for i, t in enumerate(self.texts)]
        return out

    def point(self, side, opposite=None):
        side, _, at = side.partition('@')
        if at == '=':
            x, y = opposite
            if not (self.y <= y <= self.y + self.h if side in ('left', 'right') else self.x <= x <= self.x + self.w):
                raise ValueError(f'{self.name} is not opposite')
            return {'left': (self.x, y), 'right': (self.x + self.w, y), 'top': (x, self.y),
                    'bottom': (x, self.y + self.h)}[side]
        at = float(at or 0.5)
        return {'left': (self.x, self.y + self.h * at), 'right': (self.x + self.w, self.y + self.h * at),
                'top': (self.x + self.w * at, self.y), 'bottom': (self.x + self.w * at, self.y + self.h)}[side]

    def overlaps(self, x, y, w, h):
        return x < self.x + self.w and self.x < x + w and y < self.y + self.h and self.y < y + h


def route(start, side, end, other):
    """Corners of a line that leaves and arrives at right angles."""
    (x, y), (u, v) = start, end
    flat, other_flat = side in ('left', 'right'), other in ('left', 'right')
    if flat and other_flat:
        middle = (x + u) / 2
        return [start, end] if abs(y - v) < 0.5 else [start, (middle, y), (middle, v), end]
    if not flat and not other_flat:
        middle = (y + v) / 2
        return [start, end] if abs(x - u) < 0.5 else [start, (x, middle), (u, middle), end]
    return [start, (u, y), end] if flat else [start, (x, v), end]


def frame(x, y, w, h, text):
    return (f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="8" fill="#f3f5f8" stroke="{EDGE}"/>'
            + Text(text).svg(x + 12, y + 19, 'start'))


def rooms_of_layers():
    """The texts of each room's box by layer, both in the table's order."""
    layers, is_table = {}, False
    for line in (FOLDER.parent / 'architecture.md').read_text().splitlines():
        is_table = line.startswith('| room |') or is_table and line.startswith('|')
        if not is_table or not line.startswith('| `'):
            continue
        paths = [path.split('/', 1) for path in re.findall('`([^`]*)`', line.split('|')[1])]
        are_folders = all(name.endswith('/') for _, name in paths)
        rooms = [[name] for _, name in paths] if are_folders else [[name for _, name in paths]]
        for layer, names in ((paths[0][0], names) for names in rooms):
            more = [f'~and {len(names) - 1} more'] if len(names) > 1 else []
            layers.setdefault(layer, []).append([names[0] or '~all else', *more])
    return layers


class Picture:
    def __init__(self):
        self.title, self.w, self.h = '', 0, 0
        self.frames, self.boxes, self.lines, self.labels, self.lanes = [], {}, [], [], {}
        self.now = 0

    # Commands.

    def do_title(self, text):
        self.title = text

    def do_size(self, w, h=0):
        self.w, self.h = float(w) * UNIT, float(h) * UNIT

    def do_frame(self, x, y, w, h, text):
        x, y, w, h = (float(n) * UNIT for n in (x, y, w, h))
        self.frames.append(frame(x, y, w, h, text))

    def do_box(self, name, x, y, w, h, style, *texts):
        self.add_box(name, *(float(n) * UNIT for n in (x, y, w, h)), style, texts)

    def add_box(self, name, x, y, w, h, style, texts):
        for other in self.boxes.values():
            if other.overlaps(x, y, w, h):
                raise ValueError(f'{name} overlaps {other.name}')
        self.boxes[name] = Box(name, x, y, w, h, style, texts)

    def do_text(self, x, y, align, text):
        anchor = {'left': 'start', 'center': 'middle', 'right': 'end'}[align]
        self.label(Text(text), float(x) * UNIT, float(y) * UNIT + 4.4, anchor)

    def do_arrow(self, name, side, other, other_side, *rest):
        dashed, texts = rest[:1] == ('dashed',), [t for t in rest if t != 'dashed']
        one, two = self.boxes[name], self.boxes[other]
        start = one.point(side, side.endswith('=') and two.point(other_side))
        end = two.point(other_side, other_side.endswith('=') and start)
        corners = route(start, side.partition('@')[0], end, other_side.partition('@')[0])
        for (x, y), (u, v) in zip(corners, corners[1:]):
            for box in self.boxes.values():
                if box.overlaps(min(x, u) + 1, min(y, v) + 1, abs(x - u) - 2, abs(y - v) - 2):
                    raise ValueError(f'the arrow from {name} to {other} crosses {box.name}')
        self.line(corners, dashed)
        if texts:
            length = lambda part: abs(part[0][0] - part[1][0]) + abs(part[0][1] - part[1][1])
            (x, y), (u, v) = max(zip(corners, corners[1:]), key=length)
            if abs(y - v) < 0.5:
                self.label(Text(texts[0]), (x + u) / 2, y - 6, 'middle', halo=True)
            else:
                self.label(Text(texts[0]), x + 7, (y + v) / 2 + 4.4, 'start', halo=True)

    def do_lane(self, name, x, style, *texts):
        width = max(Text(t).width() for t in texts) + 24
        height = 17 * len(texts) + 12
        x = float(x) * UNIT
        self.add_box('lane ' + name, x - width / 2, 15, width, height, style, texts)
        self.lanes[name] = x
        self.now = max(self.now, 15 + height + 14)

    def do_step(self, name, other, *rest):
        dashed, text = rest[:1] == ('dashed',), Text(rest[-1])
        x, u = self.lanes[name], self.lanes[other]
        if text.width() > abs(x - u) - 10:
            raise ValueError(f'"{text.words}" needs {text.width() + 10:.0f} of {abs(x - u):g}')
        self.now += 26
        self.line([(x, self.now), (u, self.now)], dashed)
        self.label(text, (x + u) / 2, self.now - 6, 'middle', halo=True)

    def do_note(self, name, w, style, *texts):
        w, height = float(w) * UNIT, 17 * len(texts) + 11
        self.add_box(f'note at {self.now:g}', self.lanes[name] - w / 2, self.now + 12, w, height, style, texts)
        self.now += height + 12

    def do_gap(self, h):
        self.now += float(h) * UNIT

    def do_layers(self, columns):
        width, height, top = (self.w - 47) / int(columns), 36, 15
        for layer, rooms in reversed(rooms_of_layers().items()):
            rows = -(-len(rooms) // int(columns))
            depth = 30 + rows * (height + 10)
            self.frames.append(frame(20, top, self.w - 40, depth, '*' + layer))
            for i, texts in enumerate(rooms):
                x, y = 30 + i % int(columns) * width, top + depth - (1 + i // int(columns)) * (height + 10)
                self.add_box(f'{layer} {i}', x, y, width - 13, height, 'plain', texts)
            top += depth + 10
        self.h = top + 5

    def label(self, text, x, y, anchor, halo=False):
        left = x - text.width() * {'start': 0, 'middle': 0.5, 'end': 1}[anchor]
        self.labels.append((left, y - 9, text, text.svg(x, y, anchor, halo)))

    def line(self, corners, dashed):
        path = 'M' + ' L'.join(f'{x:g} {y:g}' for x, y in corners)
        dash = ' stroke-dasharray="5 4"' if dashed else ''
        self.lines.append(f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.4"{dash} '
                          f'marker-end="url(#head)"/>')

    def svg(self):
        self.h = self.h or self.now + 30
        for box in self.boxes.values():
            if box.x < 5 or box.y < 5 or box.x + box.w > self.w - 5 or box.y + box.h > self.h - 5:
                raise ValueError(f'{box.name} is not on the picture')
        for left, top, text, _ in self.labels:
            for box in self.boxes.values():
                if box.overlaps(left, top, text.width(), 11):
                    raise ValueError(f'"{text.words}" lies on {box.name}')
            if left < 5 or left + text.width() > self.w - 5:
                raise ValueError(f'"{text.words}" is not on the picture')
        if self.now > self.h - 15:
            raise ValueError(f'the last step is at {self.now:g} of {self.h:g}')
        lifelines = [f'<path d="M{x:g} 40 V{self.h - 15:g}" stroke="{EDGE}" stroke-width="2"/>'
                     for x in self.lanes.values()]
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.w:g}" height="{self.h:g}" '
                 f'viewBox="0 0 {self.w:g} {self.h:g}" font-family="{SANS}" role="img">',
                 f'<title>{escape(self.title)}</title>',
                 '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
                 f'orient="auto-start-reverse"><path d="M0 1 L10 5 L0 9 z" fill="{LINE}"/></marker></defs>',
                 f'<rect x="0.5" y="0.5" width="{self.w - 1:g}" height="{self.h - 1:g}" rx="10" fill="{PAPER}" '
                 f'stroke="{EDGE}"/>']
        parts += self.frames + lifelines + self.lines
        for box in self.boxes.values():
            parts += box.svg()
        parts += [label[-1] for label in self.labels]
        return '\n'.join(parts) + '\n</svg>\n'


def draw(description):
    picture = Picture()
    for number, line in enumerate(description.read_text().splitlines(), 1):
        words = shlex.split(line, comments=True)
        try:
            if words:
                getattr(picture, 'do_' + words[0])(*words[1:])
        except (ValueError, KeyError, AttributeError, TypeError, IndexError) as error:
            sys.exit(f'{description}:{number}: {error!r}')
    try:
        return picture.svg()
    except ValueError as error:
        sys.exit(f'{description}: {error}')


def main():
    check = sys.argv[1:2] == ['--check']
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else FOLDER
    stale = 0
    for description in sorted(folder.glob('*.txt')):
        file = description.with_suffix('.svg')
        drawn = draw(description)
        if check and (not file.exists() or file.read_text() != drawn):
            print(f'{file} is not what {description.name} says: run docs/draw.py')
            stale = 1
        if not check:
            file.write_text(drawn)
    for file in sorted(folder.glob('*.svg')):
        if not file.with_suffix('.txt').exists():
            print(f'{file} has no description')
            stale = 1
    sys.exit(stale)


if __name__ == '__main__':
    main()
