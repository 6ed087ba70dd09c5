//! A table of a paper next to ours: every cell has the published figure, our figure, and a
//! [`Mark`].

use std::fmt::Display;
use std::iter::Sum;
use std::ops::Add;

use crate::table::{Table, absent};

/// How our figure compares with the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// They are equal.
    Equal,
    /// They differ, for the reason given below the table.
    Explained(Note),
    /// They differ and should not.
    Different,
    /// There is no figure of ours: skipped by `--quick`, or too large.
    LeftOut,
    /// There is no figure of ours: the subject was never published. The note names a substitute.
    NotToBeHad(Note),
    /// The paper has no figure.
    Blank,
}

/// A note below a table, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note(usize);

impl Note {
    fn letter(self) -> char {
        char::from_u32('a' as u32 + self.0 as u32).unwrap_or('*')
    }
}

impl Mark {
    fn word(self) -> String {
        match self {
            Mark::Equal => "equal".into(),
            Mark::Explained(note) => format!("explained ({})", note.letter()),
            Mark::Different => "DIFFERENT".into(),
            Mark::LeftOut => "left out".into(),
            Mark::NotToBeHad(note) => format!("not to be had ({})", note.letter()),
            Mark::Blank => String::new(),
        }
    }
}

/// The number of cells with each mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// [`Mark::Equal`].
    pub equal: u64,
    /// [`Mark::Explained`].
    pub explained: u64,
    /// [`Mark::Different`].
    pub different: u64,
    /// [`Mark::LeftOut`].
    pub left_out: u64,
    /// [`Mark::NotToBeHad`].
    pub not_to_be_had: u64,
}

impl Marks {
    /// Whether no cell differs that must be equal.
    pub fn good(&self) -> bool {
        self.different == 0
    }

    /// The marks of a comparison that prints its own text: one cell.
    pub fn of(equal: bool) -> Marks {
        let mut marks = Marks::default();
        marks.count(if equal { Mark::Equal } else { Mark::Different });
        marks
    }

    fn count(&mut self, mark: Mark) {
        match mark {
            Mark::Equal => self.equal += 1,
            Mark::Explained(_) => self.explained += 1,
            Mark::Different => self.different += 1,
            Mark::LeftOut => self.left_out += 1,
            Mark::NotToBeHad(_) => self.not_to_be_had += 1,
            Mark::Blank => {}
        }
    }
}

impl Add for Marks {
    type Output = Marks;

    fn add(self, other: Marks) -> Marks {
        Marks {
            equal: self.equal + other.equal,
            explained: self.explained + other.explained,
            different: self.different + other.different,
            left_out: self.left_out + other.left_out,
            not_to_be_had: self.not_to_be_had + other.not_to_be_had,
        }
    }
}

impl Sum for Marks {
    fn sum<I: Iterator<Item = Marks>>(all: I) -> Marks {
        all.fold(Marks::default(), Add::add)
    }
}

/// A table under construction.
#[derive(Debug)]
pub struct Sheet {
    title: String,
    table: Table,
    notes: Vec<String>,
    remark: Option<String>,
    marks: Marks,
}

/// A row under construction.
#[derive(Debug)]
pub struct Row<'s> {
    sheet: &'s mut Sheet,
    cells: Vec<String>,
}

impl Sheet {
    /// A table with this title and these columns. A column of the paper is followed by ours and by
    /// the mark: see [`columns`].
    pub fn new<S: Into<String>>(
        title: impl Into<String>,
        head: impl IntoIterator<Item = S>,
    ) -> Sheet {
        Sheet {
            title: title.into(),
            table: Table::new(head),
            notes: Vec::new(),
            remark: None,
            marks: Marks::default(),
        }
    }

    /// A remark on the whole table.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.remark = Some(text.into());
    }

    /// A note on cells; a repeated note is printed once.
    pub fn note(&mut self, text: impl Into<String>) -> Note {
        let text = text.into();
        let known = self.notes.iter().position(|note| *note == text);
        Note(known.unwrap_or_else(|| {
            self.notes.push(text);
            self.notes.len() - 1
        }))
    }

    /// Starts a row.
    pub fn row(&mut self, name: impl Into<String>) -> Row<'_> {
        Row { sheet: self, cells: vec![name.into()] }
    }

    /// Prints the table and its notes; returns the number of cells with each mark.
    pub fn print(&self) -> Marks {
        println!("{}\n{}", self.title, self.table.to_text().trim_end());
        for (number, note) in self.notes.iter().enumerate() {
            println!("({}) {note}", Note(number).letter());
        }
        self.remark.iter().for_each(|remark| println!("{remark}"));
        println!();
        self.marks
    }
}

impl Row<'_> {
    /// A cell without comparison.
    pub fn text(mut self, text: impl Display) -> Self {
        self.cells.push(text.to_string());
        self
    }

    /// A published figure, ours, and their mark.
    pub fn cell(
        mut self,
        published: Option<impl Display>,
        ours: Option<impl Display>,
        mark: Mark,
    ) -> Self {
        self.cells.push(published.map_or_else(absent, |figure| figure.to_string()));
        self.cells.push(ours.map_or_else(absent, |figure| figure.to_string()));
        self.cells.push(mark.word());
        self.sheet.marks.count(mark);
        self
    }

    /// Figures that must be equal.
    pub fn same<T: Display + PartialEq>(self, published: T, ours: T) -> Self {
        let mark = if published == ours { Mark::Equal } else { Mark::Different };
        self.cell(Some(published), Some(ours), mark)
    }

    /// Figures that may differ: then ours must be `expected`.
    pub fn explained<T: Display + PartialEq>(
        self,
        published: T,
        ours: T,
        expected: T,
        note: Note,
    ) -> Self {
        let mark = match (ours == published, ours == expected) {
            (true, _) => Mark::Equal,
            (false, true) => Mark::Explained(note),
            (false, false) => Mark::Different,
        };
        self.cell(Some(published), Some(ours), mark)
    }

    /// Ends the row.
    pub fn end(self) {
        let Row { sheet, cells } = self;
        sheet.table.row(cells);
    }
}

/// The heads of columns: each name, ours, and the mark.
pub fn columns<'n>(first: &'n str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let mut heads = vec![first];
    names.into_iter().for_each(|name| heads.extend([name, "ours", ""]));
    heads
}
