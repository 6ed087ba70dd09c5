//! Validates JSON against the published schema `docs/schema/check.schema.json`. Implements the part
//! of JSON Schema that it uses, and panics at any other.

use serde_json::Value;

/// The value of a text that fits the schema. `Err` says what does not fit.
pub fn validate(text: &str) -> Result<Value, String> {
    let schema: Value =
        serde_json::from_str(include_str!("../../../../../docs/schema/check.schema.json"))
            .map_err(|error| format!("the schema is not JSON: {error}"))?;
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("this is not JSON: {error}"))?;
    fits(&value, &schema, &schema, "$")?;
    Ok(value)
}

fn fits(value: &Value, schema: &Value, root: &Value, at: &str) -> Result<(), String> {
    let object = schema.as_object().expect("a schema is an object");
    for (keyword, what) in object {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let name = what
                    .as_str()
                    .and_then(|path| path.strip_prefix("#/$defs/"))
                    .expect("references are local");
                fits(value, &root["$defs"][name], root, at)?;
            }
            "oneOf" => {
                let list = what.as_array().expect("a list of schemas");
                let wrong: Vec<String> =
                    list.iter().filter_map(|one| fits(value, one, root, at).err()).collect();
                if wrong.len() + 1 != list.len() {
                    return Err(format!(
                        "{at} fits {} of {}: {wrong:?}",
                        list.len() - wrong.len(),
                        list.len()
                    ));
                }
            }
            "type" => {
                let list = what.as_array().map_or_else(|| vec![what], |list| list.iter().collect());
                if !list.iter().any(|name| is_of(value, name.as_str().expect("a type is a word"))) {
                    return Err(format!("{at} is not of the type {what}: {value}"));
                }
            }
            "enum" => {
                if !what.as_array().expect("a list of values").contains(value) {
                    return Err(format!("{at} is not one of {what}: {value}"));
                }
            }
            "const" if value != what => return Err(format!("{at} is not {what}: {value}")),
            "const" => {}
            "required" => {
                let names =
                    what.as_array().expect("a list of names").iter().filter_map(Value::as_str);
                if let Some(missing) = names.into_iter().find(|name| value.get(name).is_none()) {
                    return Err(format!("{at} has no field {missing}"));
                }
            }
            "properties" => properties(value, what, root, at)?,
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    fits(item, what, root, &format!("{at}[{index}]"))?;
                }
            }
            "minimum" => {
                let least = what.as_f64().expect("a number");
                if value.as_f64().is_some_and(|number| number < least) {
                    return Err(format!("{at} is less than {least}: {value}"));
                }
            }
            "minLength" => {
                let least = what.as_u64().expect("a number");
                if value.as_str().is_some_and(|text| (text.chars().count() as u64) < least) {
                    return Err(format!("{at} is shorter than {least}"));
                }
            }
            "pattern" => {
                let start = what
                    .as_str()
                    .and_then(|pattern| pattern.strip_prefix('^'))
                    .expect("a beginning");
                if value.as_str().is_some_and(|text| !text.starts_with(start)) {
                    return Err(format!("{at} does not begin with {start}: {value}"));
                }
            }
            other => panic!(
                "the validator does not know `{other}`: teach it, or leave it out of the schema"
            ),
        }
    }
    Ok(())
}

/// Checks that every field is known and fits.
fn properties(value: &Value, known: &Value, root: &Value, at: &str) -> Result<(), String> {
    for (name, field) in value.as_object().into_iter().flatten() {
        let schema = known.get(name).ok_or_else(|| format!("{at}.{name} is not in the schema"))?;
        fits(field, schema, root, &format!("{at}.{name}"))?;
    }
    Ok(())
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("there is no type `{other}`"),
    }
}
