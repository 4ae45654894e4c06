// Finds and finishes animations.

const isEndless = (animation) => !Number.isFinite(animation.effect?.getComputedTiming().endTime);

const runningAnimations = () => {
  const all = new Set(trees().flatMap((tree) => tree.getAnimations()));
  return [...all].filter((animation) => animation.playState === 'running');
};

// Finishes every finite animation and transition, so that none is captured midway. Endless ones continue. Returns the
// number of finished ones.
const finishAnimations = () => {
  let finished = 0;
  for (const animation of runningAnimations()) {
    if (!(animation.timeline instanceof DocumentTimeline) || isEndless(animation)) continue;
    try {
      animation.finish();
      finished += 1;
    } catch {
      // The animation has no duration, or the page has just cancelled it.
    }
  }
  return finished;
};

// When an SVG animation ends, in seconds of its document; null if it never does, or does not start by itself.
const endOfSvgAnimation = (element) => {
  try {
    const start = element.getStartTime();
    const once = element.getSimpleDuration();
    const repeats = element.getAttribute('repeatCount');
    const repeated = repeats === null ? once : once * Number(repeats);
    const end = start + repeated;
    return Number.isFinite(end) ? end : null;
  } catch {
    return null;
  }
};

// Advances SVG animations, which are not in the list of the document, until the finite ones have ended. Returns the number
// of images that were advanced.
const finishSvgAnimations = () => {
  let finished = 0;
  for (const svg of elements('svg')) {
    if (svg.ownerSVGElement || svg.animationsPaused()) continue;
    const ends = [...svg.querySelectorAll('animate, animateTransform, animateMotion, set')].map(endOfSvgAnimation);
    const end = Math.max(0, ...ends.filter((time) => time !== null));
    if (end <= svg.getCurrentTime()) continue;
    svg.setCurrentTime(end);
    finished += 1;
  }
  return finished;
};

// The end of one animation often starts another one.
const finishAllAnimations = async () => {
  for (let round = 0; round < 3 && finishAnimations() + finishSvgAnimations() > 0; round += 1) await frame();
};

// Below the first screen, animations with a view timeline are at their beginning. In a full-page image, each is shown
// as if its element were in the middle of the viewport.
const centreViewAnimations = () => {
  if (typeof ViewTimeline === 'undefined') return;
  for (const animation of runningAnimations()) {
    if (!(animation.timeline instanceof ViewTimeline)) continue;
    try {
      animation.pause();
      animation.currentTime = CSS.percent(50);
    } catch {
      // A timeline without a scroller has no position.
    }
  }
};

const hasEndlessAnimation = () =>
  runningAnimations().some((animation) => {
    const target = animation.effect?.target;
    return animation.timeline instanceof DocumentTimeline && isEndless(animation) && target && isInView(target) && isShown(target);
  }) ||
  // SVG animations are not in the document's list.
  elements('svg :is(animate, animateTransform, animateMotion)[repeatCount="indefinite"]').some((animate) => {
    const svg = animate.ownerSVGElement;
    return svg && isInView(svg) && isShown(svg);
  });
