#include "unwind/rule_cache.h"

#include "support/catch2.h"

#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::unwind;

namespace {

CompactRule rule(int16_t words) { return {.kind = CompactKind::CfaFromSp, .cfa_words = words}; }

}  // namespace

TEST_CASE("RuleCache gives back what was put in, and counts") {
  RuleCache cache(kDefaultRuleCache_bytes);
  const uint64_t key = RuleCache::key_of(7, {0x1234});
  CHECK(cache.find(key) == nullptr);
  cache.insert(key, rule(3));
  REQUIRE(cache.find(key) != nullptr);
  CHECK(*cache.find(key) == rule(3));
  CHECK(cache.hits() == 2);
  CHECK(cache.misses() == 1);
}

TEST_CASE("RuleCache tells images and addresses apart") {
  RuleCache cache(kDefaultRuleCache_bytes);
  cache.insert(RuleCache::key_of(1, {0x1000}), rule(1));
  CHECK(cache.find(RuleCache::key_of(2, {0x1000})) == nullptr);
  CHECK(cache.find(RuleCache::key_of(1, {0x1001})) == nullptr);
}

TEST_CASE("RuleCache has no key for what does not fit, and none is zero") {
  CHECK(RuleCache::key_of(0, {0}) != RuleCache::kNoKey);
  CHECK(RuleCache::key_of(0, {(uint64_t{1} << 34) - 1}) != RuleCache::kNoKey);
  CHECK(RuleCache::key_of(0, {uint64_t{1} << 34}) == RuleCache::kNoKey);
  CHECK(RuleCache::key_of((1u << 29) - 2, {0}) != RuleCache::kNoKey);
  CHECK(RuleCache::key_of((1u << 29) - 1, {0}) == RuleCache::kNoKey);
  CHECK(RuleCache::key_of(kNoImage, {0}) == RuleCache::kNoKey);
}

TEST_CASE("RuleCache keeps nothing under no key") {
  RuleCache cache(64);
  CHECK(cache.find(RuleCache::kNoKey) == nullptr);  // as free slots have
  cache.insert(RuleCache::kNoKey, rule(1));
  CHECK(cache.find(RuleCache::kNoKey) == nullptr);
}

TEST_CASE("RuleCache of one set drops the least recently used of four") {
  RuleCache cache(64);
  const auto key = [](uint64_t pc) { return RuleCache::key_of(0, {pc}); };
  for (int16_t i = 1; i <= 4; ++i) cache.insert(key(i), rule(i));
  REQUIRE(cache.find(key(1)) != nullptr);  // now the most recently used
  cache.insert(key(5), rule(5));
  CHECK(cache.find(key(2)) == nullptr);
  for (uint64_t kept : {1, 3, 4, 5}) {
    REQUIRE(cache.find(key(kept)) != nullptr);
    CHECK(*cache.find(key(kept)) == rule(static_cast<int16_t>(kept)));
  }
}

TEST_CASE("RuleCache puts another rule of a key in the place of the one that is there") {
  RuleCache cache(64);  // one set
  for (uint64_t key = 1; key <= 4; ++key) cache.insert(key, rule(static_cast<int16_t>(key)));
  cache.insert(2, rule(9));
  CHECK(*cache.find(2) == rule(9));
  for (const uint64_t key : {1, 3, 4}) CHECK(cache.find(key) != nullptr);  // nothing fell out
}

TEST_CASE("RuleCache spreads what differs in the image or in how exact it is only") {
  RuleCache cache(kDefaultRuleCache_bytes);
  std::vector<uint64_t> keys;
  for (const ImageId image : {1u, 33u, 65u, 97u, 129u}) {
    const uint64_t key = RuleCache::key_of(image, {0x1000});
    keys.insert(keys.end(), {key, key | RuleCache::kExactPc});
  }
  for (const uint64_t key : keys) cache.insert(key, rule(1));
  for (const uint64_t key : keys) CHECK(cache.find(key) != nullptr);
}

TEST_CASE("RuleCache stays within its bytes and still works when it is too small for one set") {
  CHECK(RuleCache(kDefaultRuleCache_bytes).size_bytes() == kDefaultRuleCache_bytes);
  CHECK(RuleCache(1000).size_bytes() == 512);
  RuleCache none(63);
  CHECK(none.size_bytes() == 0);
  none.insert(1, rule(1));
  CHECK(none.find(1) == nullptr);
}

TEST_CASE("RuleCache holds nearly all of as many neighbouring addresses as half its entries") {
  RuleCache cache(kDefaultRuleCache_bytes);
  constexpr uint64_t kCount = 16 * 1024;
  for (uint64_t i = 0; i < kCount; ++i) cache.insert(RuleCache::key_of(0, {i * 5}), rule(1));
  uint64_t found = 0;
  for (uint64_t i = 0; i < kCount; ++i)
    found += cache.find(RuleCache::key_of(0, {i * 5})) != nullptr;
  CHECK(found > kCount * 9 / 10);
}
