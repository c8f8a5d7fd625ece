// What is said to the user, on standard error.
#pragma once

#include <string>
#include <string_view>

namespace sentry_prof::cli {

// As it is, whole, from any thread. A closed or full standard error is nobody's business: never an
// error, never an exception.
void print(std::string_view text);

// A line of the terminal that each call replaces; what is printed meanwhile, by whatever thread,
// takes its place. These three never wait: what a stopped or slow terminal does not take at once is
// left out.
void draw_line(std::string_view text);
void erase_line();
// It is not ours to erase any more.
void forget_line();

// URLs with "***" for what stands before '@': a DSN that was given in the place of something else
// must not be quoted.
std::string without_userinfo(std::string_view text);

// "sentry-prof: MESSAGE" and a newline; what is not printable in it is replaced, and so are keys in
// URLs.
void complain(std::string_view message);

}  // namespace sentry_prof::cli
