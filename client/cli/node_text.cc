// A node's answer as text; see node_text.h. Threads: stateless.

#include "client/cli/node_text.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/text.h"

namespace tidemark::client {
namespace {

constexpr int kBarCells = 20;  // with the longest amounts a line of `top` fits 80 columns

std::string Amount(const char* label, uint64_t bytes, const char* meaning) {
  return absl::StrFormat("  %-9s %12s  %s\n", label, HumanBytes(bytes), meaning);
}

std::string DeviceText(const v1::Device& device) {
  std::string out =
      absl::StrFormat("GPU %d  %s  %s\n", device.index(), device.name(), device.uuid());
  absl::StrAppend(
      &out, Amount("leased", device.leased_bytes(), "held by jobs"),
      Amount("+ pooled", device.pooled_bytes(), "created and free, ready to lease"),
      Amount("+ foreign", device.foreign_bytes(),
             device.foreign_measured() ? "in use outside Tidemark"
                                       : "in use outside Tidemark, as far as known (no NVML)"),
      Amount("+ free", device.free_bytes(), ""), Amount("= total", device.total_bytes(), ""));
  return out;
}

std::string Moved(const v1::JobDevice& on) {
  return absl::StrCat(HumanBytes(on.moved_out_bytes_total()), " out, ",
                      HumanBytes(on.moved_in_bytes_total()), " in");
}

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

using JobKey = std::pair<uint64_t, uint32_t>;

std::map<JobKey, const v1::JobDevice*> ByJob(const v1::GetNodeResponse& node) {
  std::map<JobKey, const v1::JobDevice*> found;
  for (const v1::Job& job : node.jobs()) {
    for (const v1::JobDevice& on : job.devices()) found[{job.id(), on.device()}] = &on;
  }
  return found;
}

std::string Rate(uint64_t now, uint64_t then, double seconds) {
  if (seconds <= 0 || now < then) return "-";
  return absl::StrCat(ShortBytes(static_cast<uint64_t>(static_cast<double>(now - then) / seconds)),
                      "/s");
}

// Long names would push the figures off an 80-column terminal.
std::string ShortName(const std::string& name) {
  constexpr size_t kLongest = 12;
  return name.size() <= kLongest ? name : absl::StrCat(name.substr(0, kLongest - 1), "~");
}

std::string Clip(const std::string& text, int columns) {
  std::string out;
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = std::min(text.find('\n', start), text.size());
    absl::StrAppend(&out,
                    text.substr(start, std::min<size_t>(end - start, static_cast<size_t>(columns))),
                    "\n");
    start = end + 1;
  }
  return out;
}

std::string OfQuota(uint64_t held, uint64_t quota) {
  return absl::StrCat(HumanBytes(held), quota == 0 ? "" : absl::StrCat(" of ", HumanBytes(quota)));
}

// Who holds how much, where that says more than the list of jobs.
std::string UsersText(const v1::GetNodeResponse& node) {
  bool bounded = false;
  for (const v1::User& user : node.users()) {
    bounded = bounded || user.device_quota_bytes() != 0 || user.host_quota_bytes() != 0;
  }
  if (!bounded && node.users_size() < 2) return "";
  Table table({"USER", "JOBS", "GPU", "LEASED", "IN HOST"});
  for (const v1::User& user : node.users()) {
    for (int device = 0; device < user.device_held_bytes_size(); ++device) {
      table.Add({absl::StrCat(user.uid()), absl::StrCat(user.jobs()), absl::StrCat(device),
                 OfQuota(user.device_held_bytes(device), user.device_quota_bytes()),
                 device != 0 ? "" : OfQuota(user.host_held_bytes(), user.host_quota_bytes())});
    }
  }
  return table.str();
}

}  // namespace

std::string StatusText(const v1::GetNodeResponse& node) {
  std::string out = absl::StrFormat("node %s, tidemarkd %s, chunks of %s\n\n", node.hostname(),
                                    node.version(), HumanBytes(node.chunk_bytes()));
  for (const v1::Device& device : node.devices()) absl::StrAppend(&out, DeviceText(device), "\n");
  absl::StrAppendFormat(&out, "host memory  %s of %s in use, %s available on the node\n",
                        HumanBytes(node.host_used_bytes()), HumanBytes(node.host_budget_bytes()),
                        HumanBytes(node.host_available_bytes()));
  absl::StrAppendFormat(&out, "jobs         %d attached\n", node.jobs_size());
  if (node.jobs_size() > 0) absl::StrAppend(&out, "\n", JobsText(node));
  if (const std::string users = UsersText(node); !users.empty()) {
    absl::StrAppend(&out, "\n", users);
  }
  return out;
}

std::string JobsText(const v1::GetNodeResponse& node) {
  Table table(
      {"JOB", "NAME", "PID", "GPU", "BUDGET", "LEASED", "WANTED", "IN HOST", "PEAK", "MOVED"});
  for (const v1::Job& job : node.jobs()) {
    for (const v1::JobDevice& on : job.devices()) {
      table.Add({absl::StrCat(job.id()), job.name(), absl::StrCat(job.pid()),
                 absl::StrCat(on.device()), HumanBytes(on.budget_bytes()),
                 HumanBytes(on.leased_bytes()), HumanBytes(on.requested_bytes()),
                 HumanBytes(on.host_resident_bytes()), HumanBytes(on.peak_reserved_bytes()),
                 Moved(on)});
    }
  }
  return table.empty() ? "no jobs are attached\n" : table.str();
}

std::string TopText(const v1::GetNodeResponse& node, const v1::GetNodeResponse& before,
                    double seconds, int columns) {
  std::string out =
      absl::StrFormat("tidemark top - %s, %d jobs, %s of host memory in use\n\n", node.hostname(),
                      node.jobs_size(), HumanBytes(node.host_used_bytes()));
  for (const v1::Device& device : node.devices()) {
    const uint64_t used = device.total_bytes() - device.free_bytes();
    absl::StrAppendFormat(&out, "GPU %-2d [%s] %s of %s, leased %s\n", device.index(),
                          Bar(Share(used, device.total_bytes()), kBarCells), HumanBytes(used),
                          HumanBytes(device.total_bytes()), HumanBytes(device.leased_bytes()));
  }
  const auto earlier = ByJob(before);
  Table table(
      {"JOB", "NAME", "GPU", "BUDGET", "LEASED", "IN HOST", "OUT", "IN", "STALL", "LAUNCHES"});
  for (const v1::Job& job : node.jobs()) {
    for (const v1::JobDevice& on : job.devices()) {
      const auto found = earlier.find({job.id(), on.device()});
      const v1::JobDevice& then = found == earlier.end() ? on : *found->second;
      const double stalled =
          seconds <= 0 ? 0 : (on.stall_seconds_total() - then.stall_seconds_total()) / seconds;
      table.Add(
          {absl::StrCat(job.id()), ShortName(job.name()), absl::StrCat(on.device()),
           ShortBytes(on.budget_bytes()), ShortBytes(on.leased_bytes()),
           ShortBytes(on.host_resident_bytes()),
           Rate(on.moved_out_bytes_total(), then.moved_out_bytes_total(), seconds),
           Rate(on.moved_in_bytes_total(), then.moved_in_bytes_total(), seconds),
           seconds <= 0 ? "-" : absl::StrFormat("%.0f%%", std::clamp(stalled, 0.0, 1.0) * 100),
           absl::StrCat(on.launches_total())});
    }
  }
  absl::StrAppend(&out, "\n", table.empty() ? "no jobs are attached\n" : table.str());
  return Clip(out, columns);
}

}  // namespace tidemark::client
