//! Where the legend is placed: in a corner that no line passes through, or beside the picture.

/// A rectangle: left, top, right, bottom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

/// A place on the picture.
pub(super) type Place = (f64, f64);

/// The distance between the legend and its frame.
const GAP: f64 = 10.0;
/// Around a line or a mark that the legend has to leave free.
const CLEARANCE: f64 = 8.0;

/// The corner of `inside` where a legend of this size hides none of `lines`, each of which joins
/// its places; `None` if it would hide something in all of them.
pub(super) fn corner(
    inside: Frame,
    (width, height): (f64, f64),
    lines: &[Vec<Place>],
) -> Option<Frame> {
    if width + 2.0 * GAP > inside.right - inside.left
        || height + 2.0 * GAP > inside.bottom - inside.top
    {
        return None;
    }
    let (left, right) = (inside.left + GAP, inside.right - GAP - width);
    let (top, bottom) = (inside.top + GAP, inside.bottom - GAP - height);
    // Curves that grow leave the top left free, or the bottom right.
    let corners = [(left, top), (right, bottom), (right, top), (left, bottom)];
    let frames =
        corners.map(|(left, top)| Frame { left, top, right: left + width, bottom: top + height });
    frames.into_iter().find(|frame| {
        let wide = Frame {
            left: frame.left - CLEARANCE,
            top: frame.top - CLEARANCE,
            right: frame.right + CLEARANCE,
            bottom: frame.bottom + CLEARANCE,
        };
        !lines.iter().any(|line| passes(line, wide))
    })
}

/// Whether a line passes through a frame.
fn passes(line: &[Place], frame: Frame) -> bool {
    match line {
        [only] => crosses(*only, *only, frame),
        _ => line.windows(2).any(|ends| crosses(ends[0], ends[1], frame)),
    }
}

/// Whether a straight line between two points crosses a frame: clips the line at the frame's four
/// sides (Liang and Barsky) and tests whether anything remains.
fn crosses(from: Place, to: Place, frame: Frame) -> bool {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let sides = [
        (-dx, from.0 - frame.left),
        (dx, frame.right - from.0),
        (-dy, from.1 - frame.top),
        (dy, frame.bottom - from.1),
    ];
    let (mut first, mut last) = (0.0f64, 1.0f64);
    for (slope, room) in sides {
        if slope == 0.0 {
            if room < 0.0 {
                return false;
            }
        } else if slope < 0.0 {
            first = first.max(room / slope);
        } else {
            last = last.min(room / slope);
        }
    }
    first <= last
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: Frame = Frame { left: 0.0, top: 0.0, right: 400.0, bottom: 300.0 };
    const SIZE: (f64, f64) = (100.0, 60.0);

    #[test]
    fn lines_cross_frames() {
        let frame = Frame { left: 10.0, top: 10.0, right: 20.0, bottom: 20.0 };
        for (from, to, crossed) in [
            ((0.0, 15.0), (30.0, 15.0), true),
            ((0.0, 0.0), (30.0, 30.0), true),
            ((0.0, 25.0), (25.0, 0.0), true),
            ((0.0, 5.0), (30.0, 5.0), false),
            ((0.0, 15.0), (9.0, 15.0), false),
            ((12.0, 12.0), (12.0, 12.0), true),
            ((0.0, 21.0), (5.0, 30.0), false),
        ] {
            assert_eq!(crosses(from, to, frame), crossed, "{from:?} {to:?}");
            assert_eq!(crosses(to, from, frame), crossed, "{to:?} {from:?}");
        }
    }

    #[test]
    fn a_free_corner_is_taken() {
        let rising = vec![vec![(0.0, 300.0), (400.0, 0.0)]];
        assert_eq!(
            corner(INSIDE, SIZE, &rising).map(|frame| (frame.left, frame.top)),
            Some((10.0, 10.0))
        );
        let early = vec![vec![(0.0, 300.0), (20.0, 5.0), (400.0, 0.0)]];
        assert_eq!(
            corner(INSIDE, SIZE, &early).map(|frame| (frame.left, frame.top)),
            Some((290.0, 230.0))
        );
        let both = vec![vec![(0.0, 20.0), (400.0, 20.0)], vec![(0.0, 280.0), (400.0, 280.0)]];
        assert_eq!(corner(INSIDE, SIZE, &both), None, "then it stands beside the picture");
        assert_eq!(corner(INSIDE, (500.0, 20.0), &[]), None, "it is too wide");
    }
}
