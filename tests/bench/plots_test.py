"""plots_test.py BENCH: gnuplot draws what bench/plots.py gives it; the SVG files are read again."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

BENCH = sys.argv.pop(1)


def drawn(lines):
    """Draws one plot of these lines; returns its text, or None if there is no file."""
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + '/plots.json', 'w') as file:
            json.dump([{'file': 'one.svg', 'title': 'title', 'x_title': 'number', 'lines': lines}], file)
        subprocess.run([BENCH + '/plots.py', folder + '/plots.json', folder], check=True)
        if not os.path.exists(folder + '/one.svg'):
            return None
        with open(folder + '/one.svg') as file:
            return file.read()


def strokes_of(text):
    """Colour and dashes of each curve, in the order of the lines."""
    curves = re.split(r'<g id="gnuplot_plot_\d+"', text)[1:]
    return [re.search(r"<path stroke='([^']*)'(?: stroke-dasharray='([^']*)')?", curve).groups() for curve in curves]


class Plots(unittest.TestCase):
    def test_what_has_no_place_on_logarithmic_axes_is_left_out(self):
        text = drawn([{'name': 'of none, too', 'points': [[0, 5], [1000, 20], [2000, 30]]}])
        self.assertIn('</svg>', text)
        self.assertIn('[[1000, 20], [2000, 30]]', text)
        self.assertNotIn('nan', text)
        self.assertIsNone(drawn([{'name': 'of none', 'points': [[0, 5]]}]))

    def test_releases_of_an_unwinder_have_one_colour_and_the_newest_is_solid(self):
        names = 'libgcc 12 libgcc_s', 'libgcc 14 libgcc_s', 'libgcc 16 libgcc_s', 'nongnu 1.8.1 unw_step'
        strokes = strokes_of(drawn([{'name': name, 'points': [[1, 1], [10, 2]]} for name in names]))
        self.assertEqual(len(strokes), 4)
        self.assertEqual({colour for colour, _ in strokes[:3]}, {strokes[0][0]})
        self.assertNotEqual(strokes[3][0], strokes[0][0])
        self.assertEqual([strokes[2][1], strokes[3][1]], [None, None])
        self.assertTrue(strokes[0][1] and strokes[1][1] and strokes[0][1] != strokes[1][1])

    def test_twelve_kinds_are_told_apart(self):
        strokes = strokes_of(drawn([{'name': name, 'points': [[1, 1], [10, 2]]} for name in 'abcdefghijkl']))
        self.assertEqual(len({str(stroke) for stroke in strokes}), 12)


unittest.main()
