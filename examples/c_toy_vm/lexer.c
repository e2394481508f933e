/* Turns characters into tokens. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/c_toy_vm/toy.h"

static const char* const keywords[] = {"and", "break", "catch", "continue", "else",  "finally", "fn",   "if",
                                       "let", "not",   "or",    "return",   "throw", "try",     "while"};
/* Longer symbols come first. */
static const char* const signs[] = {"==", "!=", "<=", ">=", "<", ">", "=", "+", "-",
                                    "*",  "/",  "%",  "(",  ")", "{", "}", ",", ";"};

typedef struct lexer {
  machine* m;
  const char *at, *end;
  int line;
} lexer;

/* The letters are those of ASCII, whatever the locale. */
static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static const char* shown(char c, char into[16]) {
  snprintf(into, 16, c >= ' ' && c <= '~' ? "'%c'" : "byte 0x%02x", (unsigned char)c);
  return into;
}

static void skip_blanks(lexer* l) {
  int comment = 0;
  for (; l->at < l->end && (comment || is_space(*l->at) || *l->at == '#'); ++l->at) {
    comment = (comment || *l->at == '#') && *l->at != '\n';
    if (*l->at == '\n') ++l->line;
  }
}

static void spell(lexer* l, token* t, const char* bytes, size_t size) {
  char* const copy = toy_keep(l->m, size + 1);
  memcpy(copy, bytes, size);
  t->spelling = copy;
  t->size = size;
}

static void read_word(lexer* l, token* t) {
  const char* const begin = l->at;
  while (l->at < l->end && (is_letter(*l->at) || is_digit(*l->at))) ++l->at;
  spell(l, t, begin, (size_t)(l->at - begin));
  if (is_digit(*begin)) {
    char* end = NULL;
    errno = 0;
    t->kind = token_number;
    t->number = strtoll(t->spelling, &end, 10);
    if (*end != '\0') toy_refuse(l->m, l->line, "'%s' is no number", t->spelling);
    if (errno != 0) toy_refuse(l->m, l->line, "number %s does not fit into 64 bits", t->spelling);
    return;
  }
  t->kind = token_name;
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; ++i)
    if (strcmp(t->spelling, keywords[i]) == 0) t->kind = token_word;
}

static void read_text(lexer* l, token* t) {
  char* const bytes = toy_keep(l->m, (size_t)(l->end - l->at));
  size_t size = 0;
  char shown_as[16];
  t->kind = token_text;
  for (++l->at;;) {
    if (l->at == l->end || *l->at == '\n') break;
    char c = *l->at++;
    if (c == '"') {
      spell(l, t, bytes, size);
      return;
    }
    if (c == '\\') {
      if (l->at == l->end) break;
      c = *l->at++;
      if (c != 'n' && c != '"' && c != '\\') toy_refuse(l->m, l->line, "unknown escape: \\ and %s", shown(c, shown_as));
      if (c == 'n') c = '\n';
    }
    bytes[size++] = c;
  }
  toy_refuse(l->m, l->line, "text without closing '\"'");
}

static void read_sign(lexer* l, token* t) {
  char shown_as[16];
  for (size_t i = 0; i < sizeof signs / sizeof *signs; ++i) {
    const size_t size = strlen(signs[i]);
    if ((size_t)(l->end - l->at) < size || memcmp(l->at, signs[i], size) != 0) continue;
    t->kind = token_word;
    t->spelling = signs[i];
    l->at += size;
    return;
  }
  toy_refuse(l->m, l->line, "unexpected %s", shown(*l->at, shown_as));
}

/* The last token marks the end. */
token* toy_tokens(machine* m, const char* script, size_t size) {
  lexer l = {m, script, script + size, 1};
  token* tokens = NULL;
  for (size_t count = 0;; ++count) {
    skip_blanks(&l);
    tokens = toy_grown(m, tokens, count, sizeof *tokens);
    token* const t = &tokens[count];
    t->line = l.line;
    t->kind = token_end;
    if (l.at == l.end) return tokens;
    if (is_letter(*l.at) || is_digit(*l.at))
      read_word(&l, t);
    else if (*l.at == '"')
      read_text(&l, t);
    else
      read_sign(&l, t);
  }
}
