#!/usr/bin/env python3
"""man_pages.py VERSION FOLDER HEADER...: writes a manual page of section 3 for each function of the C interface, from the
comments of the headers, and jitunwind.3, which names them all.

What a page says of threads and signal handlers is what the function's comment says, or the one at the head of its
header. The date is that of SOURCE_DATE_EPOCH, where it is set: two runs then write the same bytes.
"""
import os
import re
import sys
import textwrap
import time

_FUNCTION = re.compile(r'^(?P<type>[\w\s*]+?)\b(?P<name>(?:ju|jitunwind)_\w+)\((?P<arguments>.*)\)', re.S)
_STATUS = re.compile(r'\b(JU_\w+) = \d+,?\s*/\*\*<\s*(.*?)\s*\*/', re.S)
_SAFETY = re.compile(r'signal-safe|[Tt]hread-safe|one thread|[Tt]hreads?\b|handler that', re.S)


class Header:
    """A header's head, and its functions in order: (section, name, declaration, comment)."""

    def __init__(self, path):
        with open(path) as file:
            text = file.read()
        self.file = os.path.basename(path)
        # Both languages see the same functions: C's declaration is the one that a manual shows.
        text = re.sub(r'#ifdef __cplusplus\n(?:(?!#e)[^\n]*\n)*#else\n((?:(?!#endif)[^\n]*\n)*)#endif\n', r'\1', text)
        text = re.sub(r'#ifdef __cplusplus\n(?:(?!#endif)[^\n]*\n)*#endif\n', '', text)
        self.head = paragraphs(re.match(r'\s*/\*(.*?)\*/', text, re.S)[1]) if text.startswith('/*') else []
        self.text = text
        self.structures = {}
        self.functions = []
        self._read(re.sub(r'^\s*#.*$', '', text, flags=re.M))

    def _read(self, text):
        section, at = [], 0
        comment = re.compile(r'/\*(\*?)(?![*<])(.*?)\*/\n', re.S)
        while True:
            found = comment.search(text, at)
            if not found:
                return
            at = found.end()
            said = paragraphs(found[2])
            if not found[1]:
                section = said
                continue
            declaration = '' if text[at:at + 1] == '\n' else declaration_at(text, at)
            structure = re.match(r'typedef (?:struct|enum) (\w+) \{', declaration)
            if structure:
                self.structures[structure[1]] = declaration
            # One comment may speak of several: up to an empty line, or another comment.
            while declaration and not structure:
                function = _FUNCTION.match(re.sub(r'^static inline ', '', declaration))
                if function and not declaration.startswith('typedef'):
                    prototype = ' '.join(function[0].split()) + ';'
                    self.functions.append((section, function['name'], prototype, said))
                at += len(declaration)
                rest = text[at:]
                if not re.match(r'\n?[a-z]', rest) or rest.startswith('\n\n'):
                    break
                at += rest.startswith('\n')
                declaration = declaration_at(text, at)


def declaration_at(text, at):
    """As far as the semicolon or brace that ends it, at the depth where it begins."""
    depth, comment = 0, False
    for i in range(at, len(text)):
        if comment:
            comment = text[i - 1:i + 1] != '*/'
        elif text[i:i + 2] == '/*':
            comment = True
        elif text[i] in '{(':
            depth += 1
        elif text[i] in '})':
            depth -= 1
            if text[i] == '}' and depth == 0 and text[at:].startswith('static inline'):
                return text[at:i + 1]
        elif text[i] == ';' and depth == 0:
            return text[at:i + 1]
    return ''


def paragraphs(comment):
    """Of text between /* and */: paragraphs as lists of lines; code keeps its two spaces and more."""
    lines = [line.rstrip().lstrip('*') if line.lstrip().startswith('* ') else line.rstrip() for line in comment.split('\n')]
    lines = textwrap.dedent('\n'.join([' ' * 8 + lines[0].strip()] + lines[1:])).split('\n')
    first = lines[0].strip()
    lines = [first] + textwrap.dedent('\n'.join(lines[1:])).split('\n')
    return [block.split('\n') for block in re.split(r'\n\s*\n', '\n'.join(lines).strip('\n')) if block.strip()]


def escaped(text):
    text = text.replace('\\', '\\e').replace('-', '\\-').replace("'", '\\(aq').replace('`', '\\(ga')
    return re.sub(r'^\.', r'\\&.', text, flags=re.M)


def filled(text):
    lines = textwrap.wrap(text, 78, break_long_words=False, break_on_hyphens=False)
    return ['\\&' + line if line.startswith(('.', "'")) else line for line in lines]


class Pages:
    def __init__(self, version, folder, headers):
        self.version, self.folder = version, folder
        epoch = int(os.environ.get('SOURCE_DATE_EPOCH', time.time()))
        self.date = time.strftime('%Y-%m-%d', time.gmtime(epoch))
        self.headers = [Header(path) for path in headers]
        self.structures = {name: text for header in self.headers for name, text in header.structures.items()}
        self.names = {name for header in self.headers for _, name, _, _ in header.functions}
        self.codes = {}
        for name, meaning in _STATUS.findall(self.structures.get('ju_status', '')):
            self.codes[name[3:].lower()] = (name, ' '.join(meaning.split()))

    def marked(self, text):
        """References as a manual has them, codes by their C names."""
        text = escaped(text)
        text = re.sub(r'\\\(ga(.*?)\\\(ga', r'\\fI\1\\fP', text)
        text = re.sub(r'\b((?:ju|jitunwind)_\w+)\(\)',
                      lambda m: '\\fB%s\\fP(3)' % m[1] if m[1] in self.names else m[0], text)
        for code, (name, _) in self.codes.items():
            if '_' in code:
                text = re.sub(r'(?<![\w.])%s(?![\w(])' % code, '\\\\fB%s\\\\fP' % name, text)
        return text

    def body(self, blocks):
        out = []
        for number, block in enumerate(blocks):
            if out and number:
                out.append('.PP')
            is_code = all(line.startswith('  ') for line in block)
            if is_code:
                out += ['.nf'] + [escaped(line) for line in block] + ['.fi']
            else:
                out += filled(self.marked(' '.join(line.strip() for line in block)))
        return out

    def title(self, name):
        return ['.\\" Written by docs/man_pages.py.',
                '.TH %s 3 %s "jitunwind %s" "C interface of jitunwind"' % (escaped(name.upper()), self.date, self.version)]

    def sentences(self, blocks):
        text = ' '.join(line.strip() for block in blocks if not block[0].startswith('  ') for line in block)
        return re.findall(r'(?:[^.]|\.(?!\s|$))+(?:\.|$)', text)

    def safety(self, header, section, said):
        general = 'Different handles: thread\\-safe. One handle: one thread at a time. Not signal\\-safe.'
        for blocks in said, section, header.head:
            found = [sentence.strip() for sentence in self.sentences(blocks) if _SAFETY.search(sentence)]
            if any(re.search('signal-safe', sentence) for sentence in found):
                return filled(self.marked(' '.join(found)))
        return filled(general)

    def page(self, header, section, name, prototype, said):
        text = [[line for line in block] for block in said]
        whole = ' '.join(line.strip() for block in text for line in block)
        summary = re.split(r'(?<=[^.])[.:](?:\s|$)', whole)[0].strip() or whole
        out = self.title(name)
        out += ['.SH NAME'] + filled('%s \\- %s' % (escaped(name), self.summary(summary)))
        out += ['.SH LIBRARY', 'libjitunwind (\\fI\\-ljitunwind\\fP)']
        include = 'jitunwind/version.h' if name == 'jitunwind_version' else 'jitunwind/c.h'
        out += ['.SH SYNOPSIS', '.nf', '\\fB#include <%s>\\fP' % include, '.PP',
                '\\fB%s\\fP' % '\\fP\n\\fB'.join(escaped(line) for line in wrapped(prototype)), '.fi']
        out += ['.SH DESCRIPTION'] + self.body(text)
        if section:
            out += ['.PP'] + self.body(section)
        shown = [used for used in re.findall(r'\bju_\w+', prototype) if used in self.structures
                 and used not in ('ju_status', 'ju_error', 'ju_cursor')]
        for used in sorted(set(shown)):
            out += ['.PP', '.nf'] + [escaped(line) for line in self.structures[used].split('\n')] + ['.fi']
        out += self.errors(whole, section, prototype)
        out += ['.SH "THREADS AND SIGNAL HANDLERS"'] + self.safety(header, section, said)
        out += self.see_also(header, section, name)
        return '\n'.join(out) + '\n'

    def summary(self, text):
        """What stands behind the name: one line, as whatis(1) shows it."""
        text = re.split(r';\s', text)[0].replace('`', '')
        text = text[0].lower() + text[1:] if text[1:2].islower() or text.startswith('A ') else text
        return escaped(text if len(text) < 90 else text[:text.rfind(' ', 0, 90)] + '...')

    def errors(self, whole, section, prototype):
        if not prototype.startswith('ju_status'):
            return []
        out = ['.SH ERRORS']
        named = []
        scope = whole + ' ' + ' '.join(line for block in section for line in block)
        for code in re.findall(r'\b[a-z]+(?:_[a-z]+)+\b', scope):
            if code in self.codes and code not in named:
                named.append(code)
        general = 'Returns \\fBJU_OK\\fP, or a code; \\fIerror\\fP, where there is one, then says more.'
        out += filled(general + ' The codes that are particular to this function:' * bool(named))
        for code in named:
            name, meaning = self.codes[code]
            out += ['.TP', '\\fB%s\\fP' % name] + filled(escaped(meaning))
        return out

    def see_also(self, header, section, name):
        beside = [other for at, other, _, _ in header.functions if other != name and at is section][:12]
        return ['.SH "SEE ALSO"'] + ['.BR %s (3),' % escaped(other) for other in beside] + ['.BR jitunwind (3)']

    def overview(self):
        out = self.title('jitunwind')
        out += ['.SH NAME', 'jitunwind \\- unwinding through code made at run time', '.SH LIBRARY',
                'libjitunwind (\\fI\\-ljitunwind\\fP)', '.SH SYNOPSIS', '.nf', '\\fB#include <jitunwind/c.h>\\fP', '.PP',
                '\\fBcc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs jitunwind)\\fP', '.fi', '.SH DESCRIPTION']
        for number, header in enumerate(header for header in self.headers if header.functions):
            title = header.file.split('.')[0]
            out += ['.SS <jitunwind/sdk/c/%s>' % header.file if title != 'version' else '.SS <jitunwind/version.h>']
            out += self.body(header.head)
            for _, name, _, said in header.functions:
                summary = re.split(r'(?<=[^.])[.:](?:\s|$)', ' '.join(line.strip() for line in said[0]))[0]
                out += ['.TP', '.BR %s (3)' % escaped(name)] + filled(self.summary(summary))
        return '\n'.join(out + ['.SH "SEE ALSO"', '.BR jitstack (1)']) + '\n'

    def write(self):
        os.makedirs(self.folder, exist_ok=True)
        pages = {'jitunwind': self.overview()}
        for header in self.headers:
            for section, name, prototype, said in header.functions:
                pages[name] = self.page(header, section, name, prototype, said)
        for name, text in pages.items():
            with open(os.path.join(self.folder, name + '.3'), 'w') as file:
                file.write(text)
        return len(pages)


def wrapped(prototype):
    begin = prototype.index('(') + 1
    return textwrap.wrap(prototype, 76, subsequent_indent=' ' * min(begin, 40), break_long_words=False)


if __name__ == '__main__':
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    print('%d pages' % Pages(sys.argv[1], sys.argv[2], sys.argv[3:]).write())
