#include "sentry/transaction_gatherer.h"

#include "sentry/scalar_forms.h"

namespace sentry_prof::sentry {

namespace {

bool is_nil(std::string_view id) {
  const auto uuid = parse_uuid(id);
  return uuid && uuid->is_nil();
}

}  // namespace

void TransactionGatherer::begin(size_t offset) {
  current_ = {};
  current_.offset = offset;
  current_.is_in_list = is_in_list_;
}

void TransactionGatherer::take(Slot slot, const Scalar& scalar, std::string_view text) {
  switch (slot) {
    case Slot::TransactionId:
      current_.id = text;
      break;
    case Slot::TraceId:
      current_.trace_id = text;
      break;
    case Slot::TransactionName:
      current_.name = text;
      break;
    case Slot::ActiveThread:
      current_.active_thread_id = text;
      break;
    case Slot::RelativeStart:
      current_.relative_start_ns = scalar.unsigned_value;
      break;
    case Slot::RelativeEnd:
      current_.relative_end_ns = scalar.unsigned_value;
      break;
    default:
      break;
  }
}

void TransactionGatherer::end(bool is_sound) {
  current_.is_sound = is_sound;
  std::optional<Transaction>& place = is_in_list_ ? first_of_list_ : single_;
  if (!place) place = current_;
}

void TransactionGatherer::choose(size_t offset) {
  if (!single_ && first_of_list_) {
    reporter_.path().push_key({"transactions", false});
    reporter_.path().push_index(0);
    reporter_.report("v1-transactions", first_of_list_->offset, [] {
      return std::string("the transaction stands in the list \"transactions\"");
    });
    reporter_.path().pop();
    reporter_.path().pop();
  }
  const auto& chosen = single_ ? single_ : first_of_list_;
  if (!chosen) {
    reporter_.report("v1-transaction-missing", offset,
                     [] { return std::string("there is no \"transaction\""); });
    return;
  }
  facts_.transaction_id = chosen->id;
  facts_.trace_id = chosen->trace_id;
  facts_.transaction_name = chosen->name;
  facts_.active_thread_id = chosen->active_thread_id;
  facts_.relative_start_ns = chosen->relative_start_ns;
  facts_.relative_end_ns = chosen->relative_end_ns;
  if (chosen->is_sound) judge(*chosen);
}

void TransactionGatherer::judge(const Transaction& transaction) {
  std::string what;
  if (is_nil(transaction.id)) what = "the transaction's \"id\" is all zeros";
  if (is_nil(transaction.trace_id)) what = "the transaction's \"trace_id\" is all zeros";
  if (transaction.name.empty()) what = "the transaction's \"name\" is empty";
  if (what.empty()) return;
  JsonPath& path = reporter_.path();
  path.push_key({transaction.is_in_list ? "transactions" : "transaction", false});
  if (transaction.is_in_list) path.push_index(0);
  reporter_.report("v1-transaction-metadata", transaction.offset, [&] { return what; });
  if (transaction.is_in_list) path.pop();
  path.pop();
}

}  // namespace sentry_prof::sentry
