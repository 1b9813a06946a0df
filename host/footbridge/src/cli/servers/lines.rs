//! What is different between two texts, line by line.

/// More comparisons than this cost too much for what a server may send: such texts are shown whole, one after the
/// other.
const MAX_COMPARISONS: usize = 4_000_000;

/// A line of one text or of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'t> {
    /// In both.
    Same(&'t str),
    /// In the old one.
    Gone(&'t str),
    /// In the new one.
    New(&'t str),
}

/// The lines of both, in order: as few as possible are gone or new.
pub(super) fn compare<'t>(old: &'t str, new: &'t str) -> Vec<Line<'t>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (beginning, old) = old.split_at(start);
    let (_, new) = new.split_at(start);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, ending) = old.split_at(old.len() - end);
    let (new, _) = new.split_at(new.len() - end);
    let mut lines: Vec<Line<'t>> = beginning.iter().map(|line| Line::Same(line)).collect();
    if old.len().saturating_mul(new.len()) > MAX_COMPARISONS {
        lines.extend(old.iter().map(|line| Line::Gone(line)));
        lines.extend(new.iter().map(|line| Line::New(line)));
    } else {
        between(old, new, &mut lines);
    }
    lines.extend(ending.iter().map(|line| Line::Same(line)));
    lines
}

/// By the longest common subsequence.
fn between<'t>(old: &[&'t str], new: &[&'t str], lines: &mut Vec<Line<'t>>) {
    let width = new.len() + 1;
    // How many lines are common from here on, for each pair of places.
    let mut common = vec![0_u32; width * (old.len() + 1)];
    let place = |i: usize, j: usize| i * width + j;
    let at = |common: &[u32], i: usize, j: usize| common.get(place(i, j)).copied().unwrap_or(0);
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            let longest =
                if a == b { 1 + at(&common, i + 1, j + 1) } else { at(&common, i + 1, j).max(at(&common, i, j + 1)) };
            common.get_mut(place(i, j)).into_iter().for_each(|cell| *cell = longest);
        }
    }
    let (mut i, mut j) = (0, 0);
    loop {
        match (old.get(i), new.get(j)) {
            (Some(a), Some(b)) if a == b => {
                lines.push(Line::Same(a));
                (i, j) = (i + 1, j + 1);
            }
            (Some(a), after) if after.is_none() || at(&common, i + 1, j) >= at(&common, i, j + 1) => {
                lines.push(Line::Gone(a));
                i += 1;
            }
            (_, Some(b)) => {
                lines.push(Line::New(b));
                j += 1;
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str) -> String {
        let sign = |line: &Line<'_>| match line {
            Line::Same(text) => format!(" {text}"),
            Line::Gone(text) => format!("-{text}"),
            Line::New(text) => format!("+{text}"),
        };
        compare(old, new).iter().map(sign).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn as_few_lines_as_possible_differ() {
        assert_eq!(shown("a", "a"), " a");
        assert_eq!(shown("a", "b"), "-a|+b");
        assert_eq!(shown("a\nb\nc", "a\nx\nc"), " a|-b|+x| c");
        assert_eq!(shown("a\nb", "a\nb\n"), " a| b|+");
        assert_eq!(shown("", "x"), "-|+x");
        assert_eq!(shown("a\nb\nc\nd", "b\nd\ne"), "-a| b|-c| d|+e");
    }

    proptest::proptest! {
        #[test]
        fn both_texts_are_in_it_whole(old in "[ab\n]{0,30}", new in "[ab\n]{0,30}") {
            let lines = compare(&old, &new);
            let without = |other: fn(&Line<'_>) -> bool| {
                let kept = lines.iter().filter(|line| !other(line));
                kept.map(|(Line::Same(t) | Line::Gone(t) | Line::New(t))| *t).collect::<Vec<_>>().join("\n")
            };
            proptest::prop_assert_eq!(without(|line| matches!(line, Line::New(_))), old.as_str());
            proptest::prop_assert_eq!(without(|line| matches!(line, Line::Gone(_))), new.as_str());
        }
    }

    #[test]
    fn texts_that_cost_too_much_are_shown_one_after_the_other() {
        let (old, new) = ("a\n".repeat(3_000), "b\n".repeat(3_000));
        let lines = compare(&old, &new);
        assert_eq!(lines.len(), 6_001);
        assert!(lines[..3_000].iter().all(|line| matches!(line, Line::Gone("a"))));
    }
}
