#include "sentry/transaction_link.h"

#include "base/ids.h"
#include "base/json_reader.h"
#include "base/json_writer.h"
#include "sentry/transaction_writer.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

namespace sentry_prof::sentry {

namespace {

// More threads than that are not counted: the busiest is among the first.
constexpr size_t kMaxThreads = 10'000;

// What is to stand in an object: members that are objects of that kind themselves, or texts.
struct Patch {
  std::string key;
  std::string text;  // if there are no `members`
  std::vector<Patch> members;
  bool keeps_existing = false;
};

std::vector<Patch> thread_data(const ProfilerLink& link) {
  return {{"thread.id", link.thread_id, {}, true}, {"thread.name", link.thread_name, {}, true}};
}

std::vector<Patch> link_patches(const ProfilerLink& link) {
  std::vector<Patch> trace{{"data", "", thread_data(link)}};
  std::vector<Patch> profile{{"profiler_id", link.profiler_id, {}}};
  return {{"contexts", "", {{"profile", "", std::move(profile)}, {"trace", "", std::move(trace)}}}};
}

std::string merged(std::string_view object, const std::vector<Patch>& patches,
                   const ProfilerLink* spans);

std::string value_of(const Patch& patch, std::string_view existing) {
  if (!patch.members.empty()) return merged(existing, patch.members, nullptr);
  std::string text;
  JsonWriter(text).string(patch.text);
  return text;
}

// `spans` with the thread in the data of each.
std::string linked_spans(std::string_view spans, const ProfilerLink& link) {
  JsonReader json(spans);
  if (json.peek() != JsonKind::Array) return std::string(spans);
  json.begin_array();
  std::string out = "[";
  while (json.next_element()) {
    const JsonKind kind = json.peek();
    const size_t begin = json.offset();
    json.skip_value();
    const std::string_view span = spans.substr(begin, json.offset() - begin);
    if (out.size() > 1) out += ',';
    out += kind == JsonKind::Object ? merged(span, {{"data", "", thread_data(link)}}, nullptr)
                                    : std::string(span);
  }
  return out + "]";
}

// `object`'s members with `patches` in them; what is no object is replaced by one. `spans`: also
// link the member of that name.
std::string merged(std::string_view object, const std::vector<Patch>& patches,
                   const ProfilerLink* spans) {
  std::string out = "{";
  std::vector<bool> is_there(patches.size());
  bool keeps_one = false;  // then the rest of the thread is not ours to name, either
  const auto add = [&out](std::string_view raw_key, std::string_view value) {
    if (out.size() > 1) out += ',';
    out.append("\"").append(raw_key).append("\":").append(value);
  };
  JsonReader json(object);
  if (json.peek() == JsonKind::Object) {
    json.begin_object();
    JsonString key;
    while (json.next_member(key)) {
      json.peek();
      const size_t begin = json.offset();
      json.skip_value();
      const std::string_view value = object.substr(begin, json.offset() - begin);
      const auto patch = std::find_if(patches.begin(), patches.end(),
                                      [&](const Patch& p) { return key.is(p.key); });
      if (patch != patches.end()) {
        is_there[static_cast<size_t>(patch - patches.begin())] = true;
        keeps_one = keeps_one || patch->keeps_existing;
        add(key.raw, patch->keeps_existing ? std::string(value) : value_of(*patch, value));
      } else if (spans != nullptr && key.is("spans")) {
        add(key.raw, linked_spans(value, *spans));
      } else {
        add(key.raw, value);
      }
    }
  }
  for (size_t i = 0; i < patches.size(); ++i) {
    const bool is_wanted = !is_there[i] && !(patches[i].keeps_existing && keeps_one);
    if (is_wanted) add(patches[i].key, value_of(patches[i], ""));
  }
  return out + "}";
}

std::string plain_text(const JsonString& string) {
  std::string buffer;
  return std::string(string.text(buffer));
}

// A text or a number as text; empty for anything else.
std::string scalar_text(JsonReader& json) {
  if (json.peek() == JsonKind::String) return plain_text(json.string());
  if (json.peek() == JsonKind::Number) return std::string(json.number());
  json.skip_value();
  return "";
}

// For each member of the object that comes: the reader stands before its value.
template <typename Take>
void for_each_member(JsonReader& json, Take take) {
  if (json.peek() != JsonKind::Object) return json.skip_value();
  json.begin_object();
  JsonString key;
  while (json.next_member(key)) take(key);
}

// Which of a chunk's stacks are empty: samples with one mark that a thread is idle.
std::vector<bool> empty_stacks(std::string_view chunk) {
  JsonReader json(chunk);
  std::vector<bool> are_empty;
  const auto read_stack = [&] {
    if (json.peek() != JsonKind::Array) return json.skip_value();
    json.begin_array();
    are_empty.push_back(!json.next_element());
    if (are_empty.back()) return;
    do json.skip_value();
    while (json.next_element());
  };
  for_each_member(json, [&](const JsonString& key) {
    if (!key.is("profile")) return json.skip_value();
    for_each_member(json, [&](const JsonString& part) {
      if (!part.is("stacks") || json.peek() != JsonKind::Array) return json.skip_value();
      json.begin_array();
      while (json.next_element()) read_stack();
    });
  });
  return are_empty;
}

class LinkReader {
 public:
  Result<ProfilerLink> read(std::string_view chunk) {
    is_stack_empty_ = empty_stacks(chunk);
    JsonReader json(chunk);
    for_each_member(json, [&](const JsonString& key) {
      if (key.is("profiler_id")) {
        link_.profiler_id = scalar_text(json);
      } else if (key.is("profile")) {
        read_profile(json);
      } else {
        json.skip_value();
      }
    });
    if (json.failed() || link_.profiler_id.empty() || samples_.empty()) {
      return fail(ErrorCode::Malformed,
                  "is no V2 chunk with samples that a transaction could name");
    }
    link_.thread_id = std::max_element(samples_.begin(), samples_.end(), [](auto& a, auto& b) {
                        return a.second < b.second;
                      })->first;
    link_.thread_name = names_[link_.thread_id];
    return link_;
  }

 private:
  void read_profile(JsonReader& json) {
    for_each_member(json, [&](const JsonString& key) {
      if (key.is("samples") && json.peek() == JsonKind::Array) {
        json.begin_array();
        while (json.next_element()) count_sample(json);
      } else if (key.is("thread_metadata")) {
        for_each_member(json, [&](const JsonString& id) { read_name(json, plain_text(id)); });
      } else {
        json.skip_value();
      }
    });
  }
  void count_sample(JsonReader& json) {
    std::string thread_id, stack_id;
    for_each_member(json, [&](const JsonString& key) {
      if (key.is("thread_id")) {
        thread_id = scalar_text(json);
      } else if (key.is("stack_id")) {
        stack_id = scalar_text(json);
      } else {
        json.skip_value();
      }
    });
    const bool is_counted = samples_.size() < kMaxThreads || samples_.contains(thread_id);
    if (thread_id.empty() || !is_counted) return;
    samples_[thread_id] += is_idle(stack_id) ? 0 : 1;
  }
  bool is_idle(std::string_view stack_id) const {
    size_t stack = 0;
    const char* const end = stack_id.data() + stack_id.size();
    const auto read = std::from_chars(stack_id.data(), end, stack);
    return read.ec == std::errc() && read.ptr == end && stack < is_stack_empty_.size() &&
           is_stack_empty_[stack];
  }
  void read_name(JsonReader& json, const std::string& id) {
    for_each_member(json, [&](const JsonString& key) {
      if (!key.is("name") || names_.size() >= kMaxThreads) return json.skip_value();
      names_[id] = scalar_text(json);
    });
  }

  ProfilerLink link_;
  std::vector<bool> is_stack_empty_;
  std::map<std::string, uint64_t> samples_;  // with a stack, by thread
  std::map<std::string, std::string> names_;
};

}  // namespace

Result<ProfilerLink> read_profiler_link(std::string_view chunk) { return LinkReader().read(chunk); }

Result<std::string> link_transaction(std::string_view transaction, const ProfilerLink& link,
                                     std::string_view event_id) {
  JsonReader json(transaction);
  const bool is_object = json.peek() == JsonKind::Object;
  json.skip_value();
  const bool ends_there =
      transaction.find_first_not_of(" \t\r\n", json.offset()) == std::string_view::npos;
  if (!is_object || json.failed() || !ends_there) {
    return fail(ErrorCode::InvalidArgument, "the transaction is no JSON object");
  }
  std::vector<Patch> patches = link_patches(link);
  patches.push_back({"event_id", std::string(event_id), {}, true});
  return merged(transaction, patches, &link);
}

std::string recording_transaction(const Session& session, uint64_t start_unix_ns,
                                  uint64_t end_unix_ns, const ProfilerLink& link) {
  TransactionEvent transaction;
  transaction.event_id = random_uuid_v4().to_hex();
  transaction.trace_id = random_uuid_v4().to_hex();
  transaction.span_id = random_uuid_v4().to_hex().substr(0, 16);
  transaction.name = session.transaction_name;
  transaction.platform = session.platform;
  transaction.release = session.release;
  transaction.environment = session.environment;
  transaction.sdk_name = session.sdk_name;
  transaction.sdk_version = session.sdk_version;
  transaction.start_unix_us = start_unix_ns / 1000;
  transaction.end_unix_us = std::max(end_unix_ns, start_unix_ns + 1000) / 1000;
  return merged(write_transaction(transaction), link_patches(link), nullptr);
}

}  // namespace sentry_prof::sentry
