// Every figure of --summary is the one that its key says.
#include "recorder/summary.h"
#include "support/catch2.h"

#include <cstdint>
#include <string>

using namespace sentry_prof::recorder;

namespace {

void fill_samples(SampleFigures& sample) {
  uint64_t next = 101;
  for (uint64_t& loss : sample.losses) loss = next++;
  next = 201;
  for (uint64_t& end : sample.walk_ends) end = next++;
  next = 301;
  for (uint64_t& frames : sample.frames_by_origin) frames = next++;
  sample.samples_with_live_frames = 401;
  sample.live_frames = 402;
  sample.samples_with_joined_frames = 403;
  sample.joined_frames = 404;
  sample.samples_with_outer_stacks = 405;
  sample.outer_stacks_missed = 406;
  sample.samples_with_frames_left_out = 407;
  sample.frames_left_out = 408;
  sample.samples_with_jit_frames = 409;
  sample.frames_without_place = 410;
  sample.samples_ending_in_unread_files = 411;
  sample.samples_ending_outside_files = 412;
  sample.clock_steps = 413;
}

void fill_source(RunFigures& figures) {
  figures.sampler = {.records = 501,
                     .sample_records = 502,
                     .lost_records = 503,
                     .throttled = 504,
                     .undecodable = 505,
                     .unknown_type = 506,
                     .cpus_not_sampled = 507,
                     .on_cpu_ns = 4'000'000'000,
                     .wakeups = 508};
  figures.setup = {.event_name = "an-event",
                   .kernel_excluded = true,
                   .copies_outer_stacks = false,
                   .no_outer_stacks = "why not",
                   .stack_bytes = 601,
                   .ring_bytes_per_cpu = 602,
                   .cpus = 603,
                   .threads_attached = 604};
  figures.unwinder = {.cache_hits = 701,
                      .cache_misses = 702,
                      .full_rows = 703,
                      .restarts = 704,
                      .remembered_frames = 705};
}

RunFigures all_different() {
  RunFigures figures;
  fill_samples(figures.sample);
  fill_source(figures);
  figures.unwind_ns = 801;
  figures.samples_written = 802;
  figures.samples_of_short_threads = 803;
  figures.idle_markers_written = 804;
  figures.chunks_written = 805;
  figures.chunks_too_small = 806;
  figures.chunks_not_written = 807;
  figures.write_errors = {"an error"};
  figures.image_problems = {"a problem"};
  figures.hottest = {{.function = "f", .code_file = "/bin/f", .samples = 808}};
  figures.jit = {.frames = 809, .frames_named = 810, .bad_map_lines = 811, .maps_cut = 812};
  figures.symbol_tables_cut = 813;
  figures.names_left_mangled = 814;
  figures.state_forgotten = 815;
  figures.code_pages_not_read = 816;
  figures.memory_reads_given_up = 817;
  figures.file_requests_given_up = 818;
  figures.command_cpu_ns = 2'500'000'000;
  figures.threads = 819;
  figures.processes = 820;
  figures.images = 821;
  figures.images_with_debug_cfi = 822;
  figures.duration_s = 1.25;
  figures.requested_hz = 823;
  figures.profiler_cpu_s = 0.5;
  figures.profiler_peak_rss_bytes = 824;
  figures.uploads = {.accepted = 901,
                     .refused = 902,
                     .dropped = 903,
                     .dropped_for_age = 904,
                     .dropped_for_size = 905,
                     .set_aside = 906,
                     .not_kept = 907,
                     .left_in_spool = 908,
                     .unsent_files = 909,
                     .lost = 910};
  figures.is_converted = true;
  figures.records_skipped = {{"COMM", 911}};
  return figures;
}

// Those are tested with what they tell of.
std::string without_notes(std::string json) {
  const size_t begin = json.find("\"notes\":[");
  json.erase(begin, json.find("\"duration_s\"") - begin);
  return json;
}

}  // namespace

TEST_CASE("Each figure of the summary stands under its own key") {
  const std::string expected =
      R"({"samples":802,"samples_complete":201,"samples_truncated":202,)"
      R"("samples_of_short_threads":803,"samples_with_outer_stacks":405,)"
      R"("samples_with_live_frames":401,"samples_with_joined_frames":403,)"
      R"("samples_with_frames_left_out":407,"samples_failed":1971,"samples_lost":101,)"
      R"("sample_records":502,"idle_markers":804,"losses":{"ring_full":101,)"
      R"("undecodable":102,"duplicate":103,"outside_process":104,"no_user_registers":105,)"
      R"("unsupported_abi":106,"during_exec":107,"unmapped_pc":108,"chunk_too_small":109,)"
      R"("chunk_not_written":110,"chunk_queue_full":111},"walk_ends":{"root":201,)"
      R"("stack_truncated":202,"bad_memory":203,"unmapped_pc":204,"no_unwind_info":205,)"
      R"("other_stack":206,"bad_cfi":207,"unsupported":208,"unknown_register":209,)"
      R"("no_progress":210,"frame_limit":211},"frames_by_origin":{"leaf":301,"cfi":302,)"
      R"("frame_pointer":303,"link_register":304,"code":305,"process_start":306,)"
      R"("kernel_chain":307},"outer_stacks_missed":406,"frames_live":402,)"
      R"("frames_joined":404,"frames_left_out":408,"samples_ending_in_unread_files":411,)"
      R"("samples_ending_outside_files":412,"samples_with_jit_frames":409,)"
      R"("jit_frames":809,"jit_frames_named":810,"jit_frames_without_place":410,)"
      R"("jit_maps_cut":812,"jit_map_bad_lines":811,"symbol_tables_cut":813,)"
      R"("names_left_mangled":814,"code_pages_not_read":816,"memory_reads_given_up":817,)"
      R"("file_requests_given_up":818,"clock_steps":413,"state_forgotten":815,)"
      R"("threads":819,"processes":820,"images":821,"images_with_debug_cfi":822,)"
      R"("chunks":805,"chunks_too_small":806,"chunks_not_written":807,"files":["a.json"],)"
      R"("write_errors":["an error"],"image_problems":["a problem"],"duration_s":1.250000,)"
      R"("requested_hz":823,"effective_hz":125.500000,"target_cpu_s":4.000000,)"
      R"("command_cpu_s":2.500000,"event":"an-event","kernel_excluded":true,)"
      R"("copies_outer_stacks":false,"no_outer_stacks":"why not","stack_bytes":601,)"
      R"("ring_bytes_per_cpu":602,"cpus":603,"threads_attached":604,)"
      R"("cpus_not_sampled":507,"profiler_cpu_s":0.500000,"profiler_peak_rss_bytes":824,)"
      R"("unwind_ns_total":801,"wakeups":508,"throttled":504,"records":501,)"
      R"("records_undecodable":505,"records_unknown_type":506,"records_lost":503,)"
      R"("rule_cache_hits":701,"rule_cache_misses":702,"full_rows":703,)"
      R"("walks_restarted":704,"frames_remembered":705,"hottest":[{"function":"f",)"
      R"("code_file":"/bin/f","samples":808}],"uploads":{"accepted":901,"refused":902,)"
      R"("dropped":903,"dropped_for_age":904,"dropped_for_size":905,"set_aside":906,)"
      R"("not_kept":907,"left_in_spool":908,"unsent_files":909,"lost":910},)"
      R"("records_skipped":{"COMM":911}})"
      "\n";
  CHECK(without_notes(summary_json(all_different(), {"a.json"})) == expected);
}
