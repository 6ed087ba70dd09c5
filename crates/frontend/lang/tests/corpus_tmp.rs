use preempt_lang::{check::check, diagnostic::{render, Style}, source::Source, syntax::parse};
#[test]
fn corpus() {
    let root = std::env::var("DIR").unwrap();
    let mut dirs = vec![std::path::PathBuf::from(root)];
    let (mut ok, mut bad) = (0, 0);
    while let Some(d) = dirs.pop() {
        for e in std::fs::read_dir(d).unwrap() {
            let p = e.unwrap().path();
            if p.is_dir() { dirs.push(p); continue }
            if p.extension().is_none_or(|x| x != "pre") { continue }
            let source = Source::new(p.to_str().unwrap(), std::fs::read_to_string(&p).unwrap());
            let (file, mut diags) = parse(&source);
            let n = diags.len();
            match check(&file, &source) { Ok(_) if n == 0 => { ok += 1; continue }, Ok(_) => {}, Err(d) => diags.extend(d) }
            bad += 1;
            println!("{}", render(&source, &diags, Style::Plain));
        }
    }
    println!("ok {ok} bad {bad}");
}
