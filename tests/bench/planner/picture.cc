#include "tests/bench/planner/picture.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <vector>

#include "core/bounds.h"
#include "core/planner.h"
#include "tests/bench/planner/cell.h"

namespace tidemark::bench {
namespace {

constexpr double kLeft = 90, kRight = 1170, kTop = 96, kBottom = 420;  // of the upper panel
constexpr double kLaneTop = 452, kLane = 34, kGap = 12;
constexpr double kHeight = 668;

class Drawing {
 public:
  Drawing(const Net& net, const steps::Simulation& run, const core::Machine& machine)
      : net_(net), run_(run), machine_(machine), per_ns_((kRight - kLeft) / run.step_ns) {
    top_bytes_ = 1.08 * static_cast<double>(std::max(net.live_peak, run.host_peak));
  }

  std::string Draw(double bound_ns, const core::TrafficBound& traffic) {
    Add("<svg xmlns='http://www.w3.org/2000/svg' width='1200' height='%.0f' "
        "viewBox='0 0 1200 %.0f' font-family='sans-serif' font-size='13' fill='#222'>\n"
        "<rect width='1200' height='%.0f' fill='#fff'/>\n",
        kHeight, kHeight, kHeight);
    Title(bound_ns, traffic);
    Axes();
    Alive();
    Resident();
    Lanes();
    Legend();
    return text_ + "</svg>\n";
  }

 private:
  __attribute__((format(printf, 2, 3))) void Add(const char* format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    std::vsnprintf(line, sizeof line, format, args);
    va_end(args);
    text_ += line;
  }

  // A net's name comes from a file.
  static std::string Escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
      out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    }
    return out;
  }

  double X(double ns) const { return kLeft + ns * per_ns_; }
  double Y(double bytes) const { return kBottom - bytes / top_bytes_ * (kBottom - kTop); }

  void Title(double bound_ns, const core::TrafficBound& traffic) {
    Add("<text x='%.0f' y='30' font-size='18' font-weight='bold'>One iteration of %s under a "
        "budget of "
        "%.1f GB</text>\n",
        kLeft, Escaped(net_.named.name).c_str(), static_cast<double>(machine_.device_budget) / 1e9);
    Add("<text x='%.0f' y='52'>step %.1f ms; lower bound %.1f ms (bound/time %.3f); with "
        "everything "
        "resident %.1f ms and %.1f GB</text>\n",
        kLeft, run_.step_ns / 1e6, bound_ns / 1e6, bound_ns / run_.step_ns, run_.ideal_ns / 1e6,
        static_cast<double>(net_.live_peak) / 1e9);
    Add("<text x='%.0f' y='72'>links %.0f GB/s each way; out %.1f GB (least possible %.1f), in "
        "%.1f GB "
        "(least possible %.1f)</text>\n",
        kLeft, machine_.out_rate / 1e9, static_cast<double>(run_.bytes_out) / 1e9,
        static_cast<double>(traffic.bytes_out) / 1e9, static_cast<double>(run_.bytes_in) / 1e9,
        static_cast<double>(traffic.bytes_in) / 1e9);
  }

  // A round step that gives five to ten ticks.
  static double Tick(double range) {
    const double rough = range / 8;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double lead = rough / power;
    return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
  }

  void Axes() {
    const double step = Tick(top_bytes_ / 1e9);
    for (double gb = 0; gb * 1e9 <= top_bytes_; gb += step) {
      Add("<path d='M%.0f %.1fH%.0f' stroke='#e4e4e4'/><text x='%.0f' y='%.1f' "
          "text-anchor='end'>%g</text>\n",
          kLeft, Y(gb * 1e9), kRight, kLeft - 8, Y(gb * 1e9) + 4, gb);
    }
    Add("<text x='24' y='%.0f' transform='rotate(-90 24 %.0f)' text-anchor='middle'>GB</text>\n",
        (kTop + kBottom) / 2, (kTop + kBottom) / 2);
    const double low = kLaneTop + 3 * (kLane + kGap);
    const double time = Tick(run_.step_ns / 1e6);
    for (double ms = 0; ms * 1e6 <= run_.step_ns; ms += time) {
      Add("<path d='M%.1f %.0fV%.0f' stroke='#e4e4e4'/><text x='%.1f' y='%.0f' "
          "text-anchor='middle'>%g</text>\n",
          X(ms * 1e6), kTop, low, X(ms * 1e6), low + 18, ms);
    }
    Add("<text x='%.0f' y='%.0f' text-anchor='middle'>ms</text>\n", (kLeft + kRight) / 2, low + 36);
  }

  // Steps through points with `time` rising; drops what a tenth of a pixel hides.
  void Line(const std::vector<std::pair<double, double>>& points, bool fill, const char* style) {
    Add("<path d='M%.1f %.1f", kLeft, fill ? kBottom : Y(points.front().second));
    double y = -1;
    for (const auto& [ns, bytes] : points) {
      if (std::abs(Y(bytes) - y) < 0.1) continue;
      y = Y(bytes);
      Add("H%.1fV%.1f", X(ns), y);
    }
    Add("H%.1f", kRight);
    if (fill) Add("V%.1fZ", kBottom);
    Add("' %s/>\n", style);
  }

  // What would be on the device at each operation with nothing away.
  void Alive() {
    const core::Step& step = net_.named.step;
    std::vector<double> change(step.ops.size() + 1, 0);
    double live = 0;
    for (const core::StepBuffer& b : step.buffers) {
      const auto bytes = static_cast<double>(b.bytes);
      if (b.persistent) live += bytes;
      change[b.persistent ? step.ops.size() : b.born] += bytes;
      change[b.persistent ? step.ops.size() : b.freed + 1] -= bytes;
    }
    std::vector<double> at(step.ops.size());
    for (size_t i = 0; i < step.ops.size(); ++i) at[i] = live += change[i];
    for (const steps::Span& span : run_.spans) {
      if (span.kind == steps::Span::Kind::kOperation)
        alive_.push_back({span.begin_ns, at[span.index]});
    }
    Line(alive_, true, "fill='#f0f0f0' stroke='#888' stroke-dasharray='3 2'");
  }

  void Resident() {
    std::vector<std::pair<double, double>> device, host;
    for (const steps::ResidencySample& s : run_.residency) {
      device.push_back({s.at_ns, static_cast<double>(s.device_bytes)});
      host.push_back({s.at_ns, static_cast<double>(s.host_bytes)});
    }
    Line(device, true, "fill='#7fb2e5' fill-opacity='0.75' stroke='#1f5f9f'");
    Line(host, false, "fill='none' stroke='#d9730d' stroke-width='1.6'");
    const double y = Y(static_cast<double>(machine_.device_budget));
    Add("<path d='M%.0f %.1fH%.0f' stroke='#c22' stroke-width='1.4' stroke-dasharray='7 4'/>\n",
        kLeft, y, kRight);
  }

  void Lanes() {
    using Kind = steps::Span::Kind;
    Lane(0, "compute",
         {{Kind::kOperation, "#5aa469"},
          {Kind::kSafepoint, "#777"},
          {Kind::kWaitOut, "#c22"},
          {Kind::kWaitIn, "#f2a33a"}});
    Lane(1, "link out", {{Kind::kCopyOut, "#8a63b8"}});
    Lane(2, "link in", {{Kind::kCopyIn, "#2b9aa0"}});
  }

  struct Paint {
    steps::Span::Kind kind;
    const char* colour;
  };

  // Spans of one kind that touch are drawn as one.
  void Lane(int number, const char* name, const std::vector<Paint>& paints) {
    const double y = kLaneTop + number * (kLane + kGap);
    Add("<text x='%.0f' y='%.1f' text-anchor='end'>%s</text>\n", kLeft - 8, y + kLane / 2 + 5,
        name);
    Add("<rect x='%.0f' y='%.1f' width='%.1f' height='%.0f' fill='#f6f6f6'/>\n", kLeft, y,
        kRight - kLeft, kLane);
    for (const Paint& paint : paints) {
      std::vector<std::pair<double, double>> joined;
      for (const steps::Span& span : run_.spans) {
        if (span.kind != paint.kind) continue;
        if (!joined.empty() && (span.begin_ns - joined.back().second) * per_ns_ < 0.05) {
          joined.back().second = std::max(joined.back().second, span.end_ns);
        } else {
          joined.push_back({span.begin_ns, span.end_ns});
        }
      }
      for (const auto& [begin, end] : joined) {
        Add("<rect x='%.2f' y='%.1f' width='%.2f' height='%.0f' fill='%s'/>\n", X(begin), y,
            std::max(0.05, (end - begin) * per_ns_), kLane, paint.colour);
      }
    }
  }

  void Legend() {
    struct Entry {
      const char* colour;
      const char* text;
    };
    constexpr Entry kEntries[] = {
        {"#7fb2e5", "on the device"},       {"#d9730d", "on the host"},
        {"#ccc", "alive (nothing away)"},   {"#c22", "budget (dashed)"},
        {"#f2a33a", "stall for a copy in"}, {"#c22", "stall for a copy out"},
        {"#5aa469", "operations"},
    };
    double x = kLeft;
    for (const Entry& entry : kEntries) {
      Add("<rect x='%.0f' y='%.0f' width='14' height='14' fill='%s'/><text x='%.0f' "
          "y='%.0f'>%s</text>\n",
          x, kHeight - 26, entry.colour, x + 20, kHeight - 14, entry.text);
      x += 44 + 6.7 * static_cast<double>(std::string(entry.text).size());
    }
  }

  const Net& net_;
  const steps::Simulation& run_;
  const core::Machine& machine_;
  const double per_ns_;
  double top_bytes_;
  std::vector<std::pair<double, double>> alive_;
  std::string text_;
};

}  // namespace

bool DrawPlan(const Net& net, int cap_percent, double gb_per_s, const std::string& path,
              std::string* why_not) {
  const core::Step& step = net.named.step;
  const core::Machine machine =
      MachineWith(net.live_peak / 100 * static_cast<core::Bytes>(cap_percent), gb_per_s);
  core::Plan plan;
  if (!PlanOf(Policy::kTidemark, step, machine, &plan, why_not)) return false;
  steps::SimulationOptions options;
  options.timeline = true;
  const steps::Simulation run = steps::Simulate(step, machine, plan, options);
  *why_not = run.refusal;
  if (!run.refusal.empty()) return false;
  const std::string text = Drawing(net, run, machine)
                               .Draw(static_cast<double>(core::FindTimeBound(step, machine).time),
                                     core::FindTrafficBound(step, machine));
  std::FILE* file = std::fopen(path.c_str(), "w");
  const bool written =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr && std::fclose(file) == 0 && written) return true;
  *why_not = path + " cannot be written";
  return false;
}

}  // namespace tidemark::bench
