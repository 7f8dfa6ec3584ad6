"""Choice of threads: is a small parallel loop faster on all threads, or on its caller's alone? Measured while it runs.

A cost model cannot know this. The other cores may belong to other processes, or the caller may read next what a loop has
written, out of another core's cache. Both can make two threads half as fast as one. So a loop of few grains is timed. It runs on
all threads three times and alone three times, and then the faster way for 64 times. Then the other way is tried again, and as
long as nothing changes, half as often each time. If the chosen way becomes slower than the other has been, that is
tried at once. Iterations are independent, so no result depends on the choice.

A trial of all threads begins with the run in which the first of them comes: a worker that sleeps needs longer to wake up than
a small loop takes. And loops are tried together, a *season* long: one that runs on all threads alone, among loops of one
thread, finds its data in another core's cache each time, and so do these after it, though two were faster for all.

What is known stands in a table by the address of the loop's code and by the power of two below its length. Two Python threads may
write one row at a time: then a number is lost, and a choice comes later.
"""

SMALL = 64  # grains: of some 20 us each
TRIES = 3  # the first is not counted: it finds its data in other caches
FIRST, MOST = 64, 1024  # times between two trials
PATIENCE = 24  # runs in which a trial of all threads waits for one of them

CLOCK = """
declare i32 @clock_gettime(i32, ptr)

define internal i64 @clock() {
  %time = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 1, ptr %time)
  %s = load i64, ptr %time
  %ns.at = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %ns.at
  %s.ns = mul i64 %s, 1000000000
  %all = add i64 %s.ns, %ns
  ret i64 %all
}
"""

_CHOICE = """
; Code and length, ns of an iteration on all threads and alone, stage, way, times left of the stage, times between trials, the
; last season that it has heard of, runs that a trial may still wait for workers.
; Ways: 0 is all threads, 1 is alone. Stages: 0 and 1 try either at first, 2 is settled, 3 tries the other way.
%site = type {{ i64, [2 x double], i32, i32, i32, i32, i32, i32 }}
@season = internal global i32 0              ; its number, and in the last bit the way that is tried in it
@sites = internal global [256 x %site] zeroinitializer, align 64

declare i64 @llvm.ctlz.i64(i64, i1)
declare double @llvm.minnum.f64(double, double)

; The row of a loop; a new one if another loop had its place.
define internal ptr @site_of(ptr %body, i64 %n) {{
  %address = ptrtoint ptr %body to i64
  %zeros = call i64 @llvm.ctlz.i64(i64 %n, i1 false)
  %high = shl i64 %zeros, 56
  %key = xor i64 %address, %high
  %mixed = mul i64 %key, -7046029254386353131
  %row = lshr i64 %mixed, 56
  %site = getelementptr [256 x %site], ptr @sites, i64 0, i64 %row
  %old = load atomic i64, ptr %site monotonic, align 8
  %same = icmp eq i64 %old, %key
  br i1 %same, label %out, label %new
new:
  %stage.at = getelementptr %site, ptr %site, i32 0, i32 2
  %way.at = getelementptr %site, ptr %site, i32 0, i32 3
  %left.at = getelementptr %site, ptr %site, i32 0, i32 4
  %gap.at = getelementptr %site, ptr %site, i32 0, i32 5
  store atomic i64 %key, ptr %site monotonic, align 8
  store atomic i32 0, ptr %stage.at monotonic, align 4
  store atomic i32 0, ptr %way.at monotonic, align 4
  store atomic i32 {tries}, ptr %left.at monotonic, align 4
  store atomic i32 {first}, ptr %gap.at monotonic, align 4
  %heard.at = getelementptr %site, ptr %site, i32 0, i32 6
  %season = load atomic i32, ptr @season monotonic, align 4
  store atomic i32 %season, ptr %heard.at monotonic, align 4
  %waits.at = getelementptr %site, ptr %site, i32 0, i32 7
  store atomic i32 {patience}, ptr %waits.at monotonic, align 4
  br label %out
out:
  ret ptr %site
}}

; A loop that is settled and has waited for half of its time takes part in a trial that another one has begun.
define internal i32 @way_of(ptr %site) {{
  %way.at = getelementptr %site, ptr %site, i32 0, i32 3
  %way = load atomic i32, ptr %way.at monotonic, align 4
  %heard.at = getelementptr %site, ptr %site, i32 0, i32 6
  %heard = load atomic i32, ptr %heard.at monotonic, align 4
  %season = load atomic i32, ptr @season monotonic, align 4
  %is.new = icmp ne i32 %heard, %season
  br i1 %is.new, label %hear, label %stay
hear:
  store atomic i32 %season, ptr %heard.at monotonic, align 4
  %stage.at = getelementptr %site, ptr %site, i32 0, i32 2
  %left.at = getelementptr %site, ptr %site, i32 0, i32 4
  %gap.at = getelementptr %site, ptr %site, i32 0, i32 5
  %stage = load atomic i32, ptr %stage.at monotonic, align 4
  %left = load atomic i32, ptr %left.at monotonic, align 4
  %gap = load atomic i32, ptr %gap.at monotonic, align 4
  %tried = and i32 %season, 1
  %differs = icmp ne i32 %tried, %way
  %settled = icmp eq i32 %stage, 2
  %twice = shl i32 %left, 1
  %has.waited = icmp sle i32 %twice, %gap
  %can = and i1 %settled, %has.waited
  %joins = and i1 %can, %differs
  br i1 %joins, label %join, label %stay
join:
  store atomic i32 3, ptr %stage.at monotonic, align 4
  store atomic i32 %tried, ptr %way.at monotonic, align 4
  store atomic i32 {tries}, ptr %left.at monotonic, align 4
  %waits.at = getelementptr %site, ptr %site, i32 0, i32 7
  store atomic i32 {patience}, ptr %waits.at monotonic, align 4
  ret i32 %tried
stay:
  ret i32 %way
}}

; The loop has run one way since a time, with help if that is the way of all threads and one has come: what is next?
define internal void @learn(ptr %site, i32 %way, i64 %n, i64 %since, i1 %helped) {{
  %now = call i64 @clock()
  %ns = sub i64 %now, %since
  %ns.f = sitofp i64 %ns to double
  %n.f = sitofp i64 %n to double
  %each = fdiv double %ns.f, %n.f
  %mean.at = getelementptr %site, ptr %site, i32 0, i32 1, i32 %way
  %other = xor i32 %way, 1
  %other.at = getelementptr %site, ptr %site, i32 0, i32 1, i32 %other
  %stage.at = getelementptr %site, ptr %site, i32 0, i32 2
  %way.at = getelementptr %site, ptr %site, i32 0, i32 3
  %left.at = getelementptr %site, ptr %site, i32 0, i32 4
  %gap.at = getelementptr %site, ptr %site, i32 0, i32 5
  %stage = load atomic i32, ptr %stage.at monotonic, align 4
  %left = load atomic i32, ptr %left.at monotonic, align 4
  %gap = load atomic i32, ptr %gap.at monotonic, align 4
  %rival = load atomic double, ptr %other.at monotonic, align 8
  %settled = icmp eq i32 %stage, 2
  br i1 %settled, label %follow, label %attempt
attempt:
  %waits.at = getelementptr %site, ptr %site, i32 0, i32 7
  %waits = load atomic i32, ptr %waits.at monotonic, align 4
  %has.patience = icmp sgt i32 %waits, 0
  %is.together = icmp eq i32 %way, 0
  %lacks = xor i1 %helped, true
  %asks = and i1 %is.together, %lacks
  %goes.on = and i1 %asks, %has.patience
  br i1 %goes.on, label %wait, label %try
wait:
  %waits.next = sub i32 %waits, 1
  store atomic i32 %waits.next, ptr %waits.at monotonic, align 4
  ret void
follow:
  ; A moving mean, in which one interruption does not count for much.
  %old = load atomic double, ptr %mean.at monotonic, align 8
  %most = fmul double %old, 4.0
  %capped = call double @llvm.minnum.f64(double %each, double %most)
  %change = fsub double %capped, %old
  %part = fmul double %change, 0.125
  %moved = fadd double %old, %part
  store atomic double %moved, ptr %mean.at monotonic, align 8
  %bearable = fmul double %rival, 1.25
  %slow = fcmp ogt double %moved, %bearable
  br label %count
try:
  ; The least of those that count.
  %fresh = icmp sge i32 %left, {counted}
  %had = load atomic double, ptr %mean.at monotonic, align 8
  %less = call double @llvm.minnum.f64(double %each, double %had)
  %least = select i1 %fresh, double %each, double %less
  store atomic double %least, ptr %mean.at monotonic, align 8
  br label %count
count:
  %mean = phi double [ %moved, %follow ], [ %least, %try ]
  %early = phi i1 [ %slow, %follow ], [ false, %try ]
  %fewer = sub i32 %left, 1
  store atomic i32 %fewer, ptr %left.at monotonic, align 4
  %none = icmp sle i32 %fewer, 0
  %over = or i1 %none, %early
  br i1 %over, label %next, label %out
next:
  %even = and i32 %stage, 1
  %tries.next = icmp eq i32 %even, 0           ; 0 -> 1, 2 -> 3
  br i1 %tries.next, label %turn, label %settle
turn:
  %after = add i32 %stage, 1
  store atomic i32 %after, ptr %stage.at monotonic, align 4
  store atomic i32 %other, ptr %way.at monotonic, align 4
  store atomic i32 {tries}, ptr %left.at monotonic, align 4
  %begins = icmp eq i32 %stage, 2
  br i1 %begins, label %begin, label %out
begin:
  %patience.at = getelementptr %site, ptr %site, i32 0, i32 7
  store atomic i32 {patience}, ptr %patience.at monotonic, align 4
  %last = load atomic i32, ptr @season monotonic, align 4
  %number = or i32 %last, 1
  %number.next = add i32 %number, 1
  %season = or i32 %number.next, %other
  store atomic i32 %season, ptr @season monotonic, align 4
  %heard.at = getelementptr %site, ptr %site, i32 0, i32 6
  store atomic i32 %season, ptr %heard.at monotonic, align 4
  br label %out
settle:
  ; All threads must gain a tenth: they take the cores from others, and leave what they wrote in other caches.
  %is.alone = icmp eq i32 %way, 1
  %alone = select i1 %is.alone, double %mean, double %rival
  %together = select i1 %is.alone, double %rival, double %mean
  %worth = fmul double %alone, 0.9
  %pays = fcmp olt double %together, %worth
  %choice = select i1 %pays, i32 0, i32 1
  %stays = icmp ne i32 %choice, %way          ; what was tried is not chosen
  %again = icmp eq i32 %stage, 3
  %calm = and i1 %stays, %again
  %double = shl i32 %gap, 1
  %long = icmp sgt i32 %double, {most}
  %capped.gap = select i1 %long, i32 {most}, i32 %double
  %gap.next = select i1 %calm, i32 %capped.gap, i32 {first}
  store atomic i32 2, ptr %stage.at monotonic, align 4
  store atomic i32 %choice, ptr %way.at monotonic, align 4
  store atomic i32 %gap.next, ptr %left.at monotonic, align 4
  store atomic i32 %gap.next, ptr %gap.at monotonic, align 4
  br label %out
out:
  ret void
}}
"""

CHOICE = _CHOICE.format(tries=TRIES, counted=TRIES - 1, first=FIRST, most=MOST, patience=PATIENCE)
