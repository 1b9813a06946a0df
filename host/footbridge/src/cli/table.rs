//! Tables for people.

/// Rows with their cells one below the other, two blanks apart.
pub(super) fn aligned(rows: &[impl AsRef<[String]>]) -> String {
    let mut widths = Vec::new();
    for row in rows.iter().map(AsRef::as_ref) {
        widths.resize(widths.len().max(row.len()), 0);
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = cell.chars().count().max(*width));
    }
    let line = |row: &[String]| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(|row| line(row.as_ref())).collect()
}
