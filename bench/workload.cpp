// What the compiler has to chew on in `scripts/bench record`: headers and templates that give
// clang++ -O2 some seconds of work with stacks of 30-60 frames, about 30 KiB deep. Never run.
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

namespace {

template <int N>
struct Rule {
  std::map<std::string, std::function<int(const std::string&)>> actions;
  std::map<int, std::tuple<std::string, int, std::vector<int>>> results;

  int apply(const std::string& text) {
    static const std::regex pattern("([a-z]+)=([0-9]+)|([A-Z]{2,})");
    int sum = N;
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
      const std::string word = it->str(1);
      if (actions.count(word) != 0) sum += actions[word](it->str(2));
      results[sum] = std::make_tuple(word, N, std::vector<int>(N + 1, sum));
    }
    return sum +
           (N > 0 ? Rule<(N > 0 ? N - 1 : 0)>().apply(std::regex_replace(text, pattern, "$2")) : 0);
  }
};

}  // namespace

int apply_rules(const std::string& text) { return Rule<12>().apply(text); }
