"""Buffer exchange: how do two buffers change their contents?  Bytes through registers: neither needs other memory."""

from __future__ import annotations

_BLOCK = 64  # bytes at a time


def _exchange_loop_text(name: str, kind: str, start: str, stop: str, step: int) -> str:
    return f"""
{name}:
  %{name}.i = phi i64 [ {start}, %{{before}} ], [ %{name}.next, %{name}.body ]
  %{name}.more = icmp slt i64 %{name}.i, {stop}
  br i1 %{name}.more, label %{name}.body, label %{{after}}
{name}.body:
  %{name}.p = getelementptr i8, ptr %x, i64 %{name}.i
  %{name}.q = getelementptr i8, ptr %y, i64 %{name}.i
  %{name}.a = load {kind}, ptr %{name}.p, align 1
  %{name}.b = load {kind}, ptr %{name}.q, align 1
  store {kind} %{name}.b, ptr %{name}.p, align 1
  store {kind} %{name}.a, ptr %{name}.q, align 1
  %{name}.next = add i64 %{name}.i, {step}
  br label %{name}"""


EXCHANGE = (
    "define hidden void @exchange(ptr %x, ptr %y, i64 %n) {\nentry:"
    + f"\n  %whole = and i64 %n, {-_BLOCK}\n  br label %blocks"
    + _exchange_loop_text("blocks", f"<{_BLOCK} x i8>", "0", "%whole", _BLOCK).format(before="entry", after="bytes")
    + _exchange_loop_text("bytes", "i8", "%whole", "%n", 1).format(before="blocks", after="out")
    + "\nout:\n  ret void\n}"
)
