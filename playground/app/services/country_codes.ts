/** Names in the file that Unicode spells otherwise. */
const OTHER_NAMES: Record<string, string> = {
  'Antigua and Barbuda': 'AG',
  'Bosnia and Herzegovina': 'BA',
  'Burma': 'MM',
  'Congo (Brazzaville)': 'CG',
  'Congo (Kinshasa)': 'CD',
  "Cote d'Ivoire": 'CI',
  'Czech Republic': 'CZ',
  'East Timor': 'TL',
  'Hong Kong': 'HK',
  'Macau': 'MO',
  'Macedonia': 'MK',
  'Myanmar': 'MM',
  'Palestine': 'PS',
  'Reunion': 'RE',
  'Saint Helena': 'SH',
  'Saint Kitts and Nevis': 'KN',
  'Saint Lucia': 'LC',
  'Saint Pierre and Miquelon': 'PM',
  'Saint Vincent and the Grenadines': 'VC',
  'Sao Tome and Principe': 'ST',
  'Svalbard': 'SJ',
  'Swaziland': 'SZ',
  'Trinidad and Tobago': 'TT',
  'Turkey': 'TR',
  'Turks and Caicos Islands': 'TC',
  'Wallis and Futuna': 'WF',
  'West Bank': 'PS',
}

const LETTERS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']

function codesByName(): Map<string, string> {
  const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' })
  const codes = new Map<string, string>()
  for (const first of LETTERS) {
    for (const second of LETTERS) {
      const name = names.of(first + second)
      // Withdrawn codes share the name of their successor, which is what Intl makes of them.
      if (name && !codes.has(name)) codes.set(name, canonical(first + second))
    }
  }
  return codes
}

function canonical(code: string): string {
  return new Intl.Locale('und', { region: code }).region ?? code
}

const codes = codesByName()

/** The ISO 3166-1 code of a country by its English name; null: no country has it. */
export function countryCode(name: string): string | null {
  return OTHER_NAMES[name] ?? codes.get(name) ?? null
}
