// Streams, events and graphs. Nothing in a stream happens before somebody waits for it.
#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "state.h"

using sim::state;

namespace sim {

CUstream stream_of(CUstream given)
{
  bool is_default = !given || given == CU_STREAM_LEGACY || given == CU_STREAM_PER_THREAD;
  return is_default ? &state().default_stream : given;
}

CUresult drain_until(CUstream stream, uint64_t position)
{
  while (stream->started < position) {
    Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->started++;
    if (state().lost) continue;
    if (CUresult failed = work()) state().lost = failed;
  }
  return state().lost;
}

CUresult drain(CUstream stream) { return drain_until(stream, stream->added); }

CUresult drain_all()
{
  drain(&state().default_stream);
  for (CUstream stream : state().streams) drain(stream);
  return state().lost;
}

CUresult enqueue(CUstream given, Work work)
{
  CUstream stream = stream_of(given);
  if (stream->capture) {
    stream->capture->nodes.push_back(std::move(work));
    return CUDA_SUCCESS;
  }
  std::vector<std::pair<CUstream, uint64_t>> first;
  if (stream == &state().default_stream) {
    for (CUstream other : state().streams) first.push_back({other, other->added});
  } else {
    first.push_back({&state().default_stream, state().default_stream.added});
  }
  stream->queue.push_back([=] {
    for (auto &[other, position] : first)
      if (CUresult failed = drain_until(other, position)) return failed;
    return work();
  });
  stream->added++;
  return CUDA_SUCCESS;
}

}  // namespace sim

extern "C" {

CUresult cuStreamCreate(CUstream *stream, unsigned)
{
  ENTER;
  *stream = new CUstream_st;
  state().streams.push_back(*stream);
  state().live["streams"]++;
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream)
{
  ENTER_WITHOUT_CONTEXT;
  CUresult result = sim::drain_all();
  auto &all = state().streams;
  all.erase(std::remove(all.begin(), all.end(), stream), all.end());
  state().live["streams"]--;  // kept in memory: events may still name it
  return result;
}
CUresult cuStreamSynchronize(CUstream stream)
{
  ENTER;
  if (sim::stream_of(stream)->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return sim::drain(sim::stream_of(stream));
}
CUresult cuStreamQuery(CUstream stream)
{
  ENTER;
  return sim::stream_of(stream)->queue.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned)
{
  ENTER;
  if (!event->stream) return CUDA_SUCCESS;
  CUstream other = event->stream;
  uint64_t position = event->position;
  return sim::enqueue(stream, [=] { return sim::drain_until(other, position); });
}

CUresult cuEventCreate(CUevent *event, unsigned)
{
  ENTER;
  *event = new CUevent_st;
  state().live["events"]++;
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event)
{
  ENTER_WITHOUT_CONTEXT;
  state().live["events"]--;  // kept in memory: a stream may still write its time
  (void)event;
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream)
{
  ENTER;
  CUresult result = sim::enqueue(stream, [=] {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    event->time = std::chrono::duration<double, std::milli>(now).count();
    return CUDA_SUCCESS;
  });
  event->stream = sim::stream_of(stream), event->position = event->stream->added;
  return result;
}
CUresult cuEventSynchronize(CUevent event)
{
  ENTER;
  return event->stream ? sim::drain_until(event->stream, event->position) : CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent event)
{
  ENTER;
  bool done = !event->stream || event->stream->started >= event->position;
  return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
  ENTER;
  *milliseconds = (float)(end->time - start->time);
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode)
{
  ENTER;
  if (getenv("PLAIT_DRIVER_NO_GRAPHS")) return CUDA_ERROR_NOT_SUPPORTED;
  if (sim::stream_of(stream) == &state().default_stream) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  stream->capture = new CUgraph_st;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
  ENTER;
  *graph = stream->capture;
  stream->capture = nullptr;
  state().live["graphs"] += *graph != nullptr;
  return *graph ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long)
{
  ENTER;
  *executable = new CUgraphExec_st{graph->nodes};
  state().live["graphs"]++;
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
  ENTER;
  for (Work &node : executable->nodes)
    if (CUresult failed = sim::enqueue(stream, node)) return failed;
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph)
{
  ENTER_WITHOUT_CONTEXT;
  delete graph;
  state().live["graphs"]--;
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec executable)
{
  ENTER_WITHOUT_CONTEXT;
  delete executable;
  state().live["graphs"]--;
  return CUDA_SUCCESS;
}
}
