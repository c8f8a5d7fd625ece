// Writes the documents that are made of the rule table: docs/rules.md (markdown) and
// man/sentry-prof-rules.7 (man).
//   rule_documents markdown|man            to standard output
//   rule_documents markdown|man FILE       compares FILE with it; fails if they differ
#include "sentry/rules.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace {

using sentry_prof::Severity;
using sentry_prof::sentry::all_rules;
using sentry_prof::sentry::DocumentsEffect;
using sentry_prof::sentry::RelayEffect;
using sentry_prof::sentry::Rule;

std::string_view severity_word(Severity severity) {
  if (severity == Severity::Error) return "error";
  return severity == Severity::Warning ? "warning" : "note";
}

std::string relay_words(const Rule& rule) {
  if (rule.relay == RelayEffect::Refuses) return fmt::format("refuses: {}", rule.reason);
  if (rule.relay == RelayEffect::Unknown) return "not known";
  return rule.relay == RelayEffect::Loses ? "accepts, with losses" : "accepts";
}

std::string_view documents_words(DocumentsEffect effect) {
  if (effect == DocumentsEffect::Must) return "forbid it";
  return effect == DocumentsEffect::Should ? "advise against it" : "silent";
}

constexpr std::string_view kIntroduction =
    "What 'sentry-prof validate' looks at. A rule has two verdicts: what Sentry's server (Relay) "
    "does with a profile that breaks "
    "it, and what the published documents (sample formats V1 and V2, debug meta interface) say. "
    "The severity is that of "
    "'--against both', the default. With '--against relay' all that the server refuses is an error "
    "and what it loses a warning; "
    "with '--against documents' a broken MUST is an error and a broken SHOULD a warning.";

constexpr std::string_view kUpload =
    "'sentry-prof upload' sends it in the form that the server takes.";

// ---- Markdown ----

std::string table_cell(std::string_view text) {
  std::string out;
  for (const char c : text) (c == '|' ? out += "\\|" : out += c);
  return out;
}

std::string markdown_rule(const Rule& rule) {
  std::string out = fmt::format("## {}\n\n{}\n\n", rule.id, rule.title);
  const auto item = [&out](std::string_view head, std::string_view text) {
    if (!text.empty()) out += fmt::format("- **{}** {}\n", head, text);
  };
  item("Severity:", severity_word(rule.severity));
  item(fmt::format("Server ({}):", relay_words(rule)), rule.server);
  if (rule.is_mended_by_upload) item("Upload:", kUpload);
  item(fmt::format("Documents ({}):", documents_words(rule.documents)), rule.published);
  item("What to do:", rule.mend);
  item("Source:", rule.source);
  out += fmt::format("\nBreaks it:\n\n    {}\n\nKeeps it:\n\n    {}\n", rule.breaks, rule.holds);
  return out;
}

std::string markdown() {
  std::string out = fmt::format(
      "# Rules\n\n<!-- Made of the table in src/sentry by: ninja -C BUILD update-rule-documents "
      "-->\n\n{}\n\n"
      "| rule | severity | server | documents |\n|---|---|---|---|\n",
      kIntroduction);
  for (const Rule& rule : all_rules()) {
    out += fmt::format("| [{0}](#{0}) | {1} | {2} | {3} |\n", rule.id, severity_word(rule.severity),
                       table_cell(relay_words(rule)), documents_words(rule.documents));
  }
  for (const Rule& rule : all_rules()) out.append("\n").append(markdown_rule(rule));
  return out;
}

// ---- Manual page, groff_man(7) ----

std::string_view roff_character(char c) {
  switch (c) {
    case '\\':
      return "\\e";
    case '-':
      return "\\-";
    case '\'':
      return "\\(aq";
    case '`':
      return "\\(ga";
    case '^':
      return "\\(ha";
    case '~':
      return "\\(ti";
    case '"':
      return "\\(dq";
    default:
      return {};
  }
}

std::string roff(std::string_view text) {
  std::string out;
  if (text.starts_with('.')) out += "\\&";
  for (const char& c : text) {
    const std::string_view replaced = roff_character(c);
    out += replaced.empty() ? std::string_view(&c, 1) : replaced;
  }
  return out;
}

std::string man_rule(const Rule& rule) {
  std::string out = fmt::format(".SS {}\n{}\n", roff(rule.id), roff(rule.title));
  const auto item = [&out](std::string_view head, std::string_view text) {
    if (!text.empty()) out += fmt::format(".TP\n.B {}\n{}\n", roff(head), roff(text));
  };
  item("severity", severity_word(rule.severity));
  item("server", fmt::format("({}) {}", relay_words(rule), rule.server));
  if (rule.is_mended_by_upload) item("upload", kUpload);
  item("documents", fmt::format("({}) {}", documents_words(rule.documents), rule.published));
  item("what to do", rule.mend);
  item("source", rule.source);
  item("breaks it", rule.breaks);
  item("keeps it", rule.holds);
  return out;
}

std::string man() {
  std::string out = fmt::format(
      ".\\\" Made of the table in src/sentry by: ninja -C BUILD update-rule-documents\n"
      ".TH SENTRY\\-PROF\\-RULES 7 2026-11-21 \"sentry-prof {}\" \"Miscellaneous Information\"\n"
      ".SH NAME\nsentry\\-prof\\-rules \\- what Sentry demands of a profile\n"
      ".SH DESCRIPTION\n{}\n.SH RULES\n",
      SENTRY_PROF_VERSION, roff(kIntroduction));
  for (const Rule& rule : all_rules()) out += man_rule(rule);
  out += ".SH SEE ALSO\n.BR sentry\\-prof\\-validate (1)\n";
  return out;
}

bool is_up_to_date(const char* path, const std::string& text) {
  std::ifstream file(path, std::ios::binary);
  if (std::string(std::istreambuf_iterator<char>(file), {}) == text) return true;
  fmt::print(stderr,
             "{} is not what the rule table gives; run: ninja -C BUILD update-rule-documents\n",
             path);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc > 1 ? argv[1] : "";
  if ((kind != "markdown" && kind != "man") || argc > 3) {
    fmt::print(stderr, "usage: rule_documents markdown|man [FILE]\n");
    return 2;
  }
  const std::string text = kind == "man" ? man() : markdown();
  if (argc == 3) return is_up_to_date(argv[2], text) ? 0 : 1;
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
